"""Values of an SDK's types: each field, each member of a union and each literal is in at least one of them.

In: a TypedDict of requests, or a model of answers. Out: JSON.
Not here: what becomes of the values (`test_messages`).
"""

import types
from collections.abc import Iterator
from datetime import datetime
from itertools import zip_longest
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import pydantic
from typing_extensions import get_type_hints, is_typeddict

WORD = "xx"
"""A string."""


def samples(kind: Any, inside: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Values of a type; a type that is inside itself has none there."""
    origin, given = get_origin(kind), get_args(kind)
    if origin in (Annotated, Required, NotRequired):
        yield from samples(given[0], inside)
    elif origin in (Union, types.UnionType):
        for each in given:
            yield from samples(each, inside)
    elif origin is Literal:
        yield from given
    elif kind is str:
        yield WORD
    elif kind in (int, float):
        yield 1
    elif kind is bool:
        yield True
    elif kind is datetime:
        yield "2026-11-23T00:00:00Z"
    elif kind in (object, Any):
        yield {WORD: [WORD, 1]}
    elif kind is type(None) or _is_file(kind):
        return
    elif origin is not None and (origin is dict or "Mapping" in str(origin)):
        yield {WORD: next(samples(given[1], inside))}
    elif origin is not None or "SequenceNotStr" in str(kind):
        yield [each for item in given or (str,) for each in samples(item, inside)]
    elif kind not in inside:
        yield from _records(kind, (*inside, kind))


def without_repeats(value: Any, records: int) -> Any:
    """JSON without elements of lists that bring no new field; a field is known by so many records around it."""
    seen: set[tuple[str, ...]] = set()

    def below(path: tuple[str, ...], of: dict[str, Any]) -> tuple[str, ...]:
        return (*path, f"{of.get('type')}, {of.get('role')}")

    def fields(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(value, dict):
            for name, each in value.items():
                yield from fields(each, (*below(path, value), name))
        elif isinstance(value, list):
            for each in value:
                yield from fields(each, path)
        else:
            yield path[-2 * records :]

    def kept(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {name: kept(each, (*below(path, value), name)) for name, each in value.items()}
        if isinstance(value, list):
            return [kept(each, path) for each in value if not seen.issuperset(fields(each, path))]
        seen.add(path[-2 * records :])
        return value

    return kept(value, ())


def _records(kind: Any, inside: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    fields = {name: list(samples(of, inside)) for name, of in _fields(kind).items()}
    for row in zip_longest(*fields.values(), fillvalue=None):
        found = {name: value for name, value in zip(fields, row, strict=True) if value is not None}
        tags = {
            name: values[0]
            for name, values in fields.items()
            if values and name in ("type", "role")
        }
        yield tags | found


def _fields(kind: Any) -> dict[str, Any]:
    if is_typeddict(kind):
        return get_type_hints(kind, include_extras=True)
    assert issubclass(kind, pydantic.BaseModel)
    return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}


def _is_file(kind: Any) -> bool:
    return getattr(get_origin(kind) or kind, "__name__", "") in ("IO", "PathLike")
