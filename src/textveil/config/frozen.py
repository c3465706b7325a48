"""Option classes: frozen dataclasses that validate their fields.

When they are built, from keywords only.

In: a class with annotated fields. Out: a pydantic dataclass that raises one-line `ConfigError`s.
Not here: the options themselves (`sections`), and how they are read from files and the command line
(`sources`).
"""

import re
from collections.abc import Callable, Collection
from dataclasses import asdict, fields
from functools import wraps
from typing import Any, TypeVar, dataclass_transform

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from textveil.errors import ConfigError, TextveilError, UnknownName

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
def options(prefix: str = "") -> Callable[[_Class], _Class]:
    """Makes a class a frozen, keyword-only dataclass with one-line errors.

    Args:
        prefix: goes before field names in messages ("words.").
    """

    def decorate(cls: _Class) -> _Class:
        made: Any = dataclass(
            frozen=True,
            kw_only=True,
            config=ConfigDict(extra="forbid", arbitrary_types_allowed=True),
        )(cls)
        build = made.__init__
        known = [field.name for field in fields(made)]
        secret = [prefix + field.name for field in fields(made) if not field.repr]

        @wraps(build)
        def construct(self: object, /, *args: Any, **values: Any) -> None:
            if args:
                raise TypeError(f"{cls.__name__} takes keyword arguments only")
            for name in sorted(values.keys() - set(known)):
                raise UnknownName(f"option of {cls.__name__}", name, known)
            try:
                build(self, **values)
                return
            except ValidationError as error:
                refused = complaint(error, prefix, secret=secret)
            raise refused  # raised out here, because a chained error would hold the value, which may be a key

        made.__init__ = construct
        return made  # type: ignore[no-any-return]

    return decorate


def plain(parts: Any) -> dict[str, object]:
    """Returns the fields of an options dataclass as plain data.

    Nested ones, too.

    Leaves out fields with names and texts for people, and those with `repr=False`, which may be
    keys.
    """
    shown = {
        field.name
        for field in fields(parts)
        if field.repr and field.name not in ("name", "caveats")
    }
    return {name: value for name, value in asdict(parts).items() if name in shown}


def complaint(
    error: ValidationError, prefix: str = "", path: str | None = None, secret: Collection[str] = ()
) -> TextveilError:
    """Converts pydantic's first error to a one-line error.

    The value it shows is an option's, never text to privatize.

    Args:
        error: what pydantic raised.
        prefix: goes before the field's name.
        path: the option's full name, if the error does not have it.
        secret: full names of options whose values are not shown.
    """
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, TextveilError):  # raised by the class's own check during validation
        return cause
    name = path or prefix + ".".join(str(part) for part in first["loc"])
    says = re.sub(r"^(Input|Value|String|Number) should ", "must ", first["msg"])
    says = re.sub(r", (unable to parse|got a number with).*", "", says)
    given = (
        ""
        if any(name.startswith(each) for each in secret)
        else f", got {_cut(repr(first['input']))}"
    )
    return ConfigError(f"{name} {says[0].lower()}{says[1:]}{given}")


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
