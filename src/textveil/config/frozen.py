"""Option classes: frozen dataclasses that validate their fields.

When they are built, from keywords only.

In: a class with annotated fields. Out: a pydantic dataclass that raises one-line `ConfigError`s.
Not here: the options themselves (`sections`), and how they are read from files and the command line
(`option_sources`).
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
def make_options(prefix: str = "") -> Callable[[_Class], _Class]:
    """Makes a class a frozen, keyword-only dataclass with one-line errors.

    Args:
        prefix: goes before field names in messages ("words.").
    """

    def decorate(cls: _Class) -> _Class:
        options_class: Any = dataclass(
            frozen=True,
            kw_only=True,
            config=ConfigDict(extra="forbid", arbitrary_types_allowed=True),
        )(cls)
        build = options_class.__init__
        names = [field.name for field in fields(options_class)]
        secret = [prefix + field.name for field in fields(options_class) if not field.repr]

        @wraps(build)
        def construct(self: object, /, *args: Any, **values: Any) -> None:
            if args:
                raise TypeError(f"{cls.__name__} takes keyword arguments only")
            for name in sorted(values.keys() - set(names)):
                raise UnknownName(f"option of {cls.__name__}", name, names)
            try:
                build(self, **values)
                return
            except ValidationError as error:
                failure = convert_error(error, prefix, secret=secret)
            raise failure  # raised out here, because a chained error would hold the value, which may be a key

        options_class.__init__ = construct
        return options_class  # type: ignore[no-any-return]

    return decorate


def dump_options(section: Any) -> dict[str, object]:
    """Returns the fields of an options dataclass as plain data.

    Nested ones, too.

    Leaves out fields with names and texts for people, and those with `repr=False`, which may be
    keys.
    """
    names = {
        field.name
        for field in fields(section)
        if field.repr and field.name not in ("name", "caveats")
    }
    return {name: value for name, value in asdict(section).items() if name in names}


def convert_error(
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
    message = re.sub(r"^(Input|Value|String|Number) should ", "must ", first["msg"])
    message = re.sub(r", (unable to parse|got a number with).*", "", message)
    value_text = (
        ""
        if any(name.startswith(secret_name) for secret_name in secret)
        else f", got {_shorten(repr(first['input']))}"
    )
    return ConfigError(f"{name} {message[0].lower()}{message[1:]}{value_text}")


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
