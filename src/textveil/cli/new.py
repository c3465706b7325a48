"""The verb `new`: a package with a part of your own, ready to install.

In: a kind and a name. Out: a folder with a module, its entry point, a test and a page.
Not here: what the parts are (the templates in `data/templates`), and how names are found
(`config.registry`).
"""

import keyword
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from textveil.cli import console
from textveil.cli.decorators import verb
from textveil.errors import ConfigError, UnknownName, quote_short
from textveil.files import text_streams

TRIALS = {
    "mechanism": "textveil bench compare {} --quick --output compared",
    "detector": "textveil bench compare {} --quick --output compared",
    "attack": "textveil bench compare {} --quick --output compared",
    "dataset": "textveil bench compare {} --quick --output compared",
    "measure": "textveil measure letters.txt --metrics {} --mechanism exponential --epsilon 8",
}
"""The kinds that have a template, with the command that tries one."""

CORE_KINDS = ("mechanism", "detector")
"""Kinds that need no `textveil-bench`."""

CLASS_KINDS = ("detector", "attack")
"""Kinds whose entry point is a class; all others have a function."""

FUNCTION_VERBS = {"mechanism": "build", "dataset": "read", "measure": "count"}


@verb(
    "textveil new mechanism my-noise",
    "textveil new detector ward-codes --output work/ward-codes",
)
def new(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="mechanism, detector, attack, dataset or measure.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Small letters, digits and hyphens: my-noise.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="DIR", help="The folder to make; else the name."),
    ] = None,
) -> None:
    """Start a package with a mechanism, detector, attack, data set or measure of your own.

    It installs, and is then listed, explained, audited, attacked and compared by its name.
    """
    if kind not in TRIALS:
        raise UnknownName("kind of package", kind, TRIALS)
    check_name(kind, name)
    folder = Path(name if output is None else output)
    if folder.exists():
        raise ConfigError("--output must be a folder that does not exist yet")
    with text_streams.convert_write_errors():
        text_streams.make_folder(folder)
        for file, text in build_package(kind, name).items():
            (folder / file).write_text(text, encoding="utf-8")
    console.note(
        console.wrap(
            f"Written to {folder.name}. `pip install -e {shlex.quote(str(folder))}` makes it known; "
            "its page README.md says how to test and compare it."
        )
    )


def check_name(kind: str, name: str) -> None:
    """Refuses a name that is not a package's, or that something else has.

    Raises:
        ConfigError: the name is malformed or taken.
    """
    from importlib.util import find_spec

    from textveil.config import registry

    module = name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(module):
        raise ConfigError(
            "NAME must be small letters, digits and single hyphens, begin with a letter, and be "
            f"no word of Python, got {quote_short(name)}"
        )
    for other in registry.REGISTRY_KINDS:
        if name in (*registry.list_names(other), *registry.list_absent(other)):
            raise ConfigError(
                f"NAME must be new, and there is {'an' if other == 'attack' else 'a'} {other} {name!r}"
            )
    if module in sys.stdlib_module_names or find_spec(module) is not None:
        raise ConfigError(f"NAME must be new, and there is a Python module {module!r}")


def build_package(kind: str, name: str) -> dict[str, str]:
    """Returns the texts of a package's files, by file name."""
    from importlib.resources import files
    from string import Template

    from textveil.config import registry

    templates = files("textveil") / "data" / "templates"
    module = name.replace("-", "_")
    kind_words = {"dataset": "data set"}.get(kind, kind)
    class_name = "".join(part.capitalize() for part in name.split("-"))
    values = {
        "name": name,
        "kind": kind_words,
        "article": "An" if kind_words[0] in "aeiou" else "A",
        "module": module,
        "Class": class_name,
        "target": class_name if kind in CLASS_KINDS else f"{FUNCTION_VERBS[kind]}_{module}",
        "group": {str(k): group for k, group in registry.ENTRY_POINT_GROUPS.items()}[kind],
        "requires": "textveil" if kind in CORE_KINDS else "textveil-bench",
        "try_it": TRIALS[kind].format(name),
    }
    sources = {
        "pyproject.toml": templates / "pyproject.toml.txt",
        "README.md": templates / "README.md.txt",
        f"{module}.py": templates / kind / "module.py.txt",
        f"test_{module}.py": templates / kind / "test.py.txt",
    }
    return {
        file: Template(source.read_text(encoding="utf-8")).substitute(values)
        for file, source in sources.items()
    }
