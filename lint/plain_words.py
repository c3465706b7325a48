"""Checks that names and docstrings are plain words: `make lint`.

In: the source of the package and of the bench; `plain_words.json`, the figures of rooms that do not
keep a limit yet.
Out: a line for each limit that a room exceeds, and exit status 1. `--write` stores the present
figures, unless one is higher than the stored one: a room becomes better and never worse.
Not here: everything that ruff checks.
"""

import ast
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
RIDDLES = re.compile(r"(What|Whether|Who|Whose|Where|Which|How|When|The same)\b")
STOPGAPS = re.compile(r"(found|made|said|told|own|each|known|given|kept|came|news|besides)$")
ODD = re.compile(
    r"(?!(?:feed|embed|need|seed|speed|exceed)$)\w+ed$"
    r"|(found|said|told|made|given|kept|held|begun|known|left|seen|sent|drawn|written)$"
    r"|(spelt|taken|shown|built|hidden|lost|gone|came|meant|bound|chosen)$"
    r"|(at|in|of|with|within|around|besides?|behind|before|after|near|inside|outside)$"
    r"|(between|across|upon|under|over|by|from|to|for|into|since|until)$"
)
"""Participles and prepositions."""

VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text().split())
"""First words of functions, and of predicates."""

LIMITS = {
    "functions not named by a verb, %": 30,
    "docstrings that begin with a riddle, %": 1,
    "words of a docstring's first line, median": 12,
    "functions named by a participle or a preposition, %": 4,
    "stopgap names, of 1,000 assigned": 5,
}
"""For each room."""

MODULES = 5
"""Modules, at most, with a constant of one name; those in `CONVENTIONS` are the same everywhere."""

CONVENTIONS = {"__all__", "RULES", "VERSION", "T", "JsonObject", "ProgressCallback"}

OPEN = Path(__file__).with_suffix(".json")


def read_rooms() -> dict[str, list[ast.AST]]:
    """Parses the modules of each room."""
    rooms: dict[str, list[ast.AST]] = defaultdict(list)
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]):
        parts = path.relative_to(ROOT).parts
        room = "bench" if parts[0] == "packages" else parts[2].removesuffix(".py")
        rooms[room].extend(ast.walk(ast.parse(path.read_bytes())))
    return rooms


def measure(nodes: list[ast.AST]) -> Iterator[float]:
    """Yields the figure for each limit, in their order."""
    functions = [n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    described = [*functions, *(n for n in nodes if isinstance(n, ast.ClassDef))]
    lines = [text.split("\n")[0] for n in described if (text := ast.get_docstring(n))]
    firsts = [
        n.name.strip("_").split("_")[0]
        for n in functions
        if not n.name.startswith("__")
        and not any("property" in ast.unparse(decorator) for decorator in n.decorator_list)
    ]
    yield 100 * sum(first not in VERBS for first in firsts) / max(1, len(firsts))
    yield 100 * sum(map(bool, map(RIDDLES.match, lines))) / max(1, len(lines))
    yield median([len(line.split()) for line in lines] or [0])
    odd = list(filter(ODD.match, firsts))
    yield 100 * len(odd) / max(1, len(firsts))
    assigned = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    yield 1000 * len(list(filter(STOPGAPS.match, assigned))) / max(1, len(assigned))


def list_common_constants() -> Iterator[str]:
    """Yields a line for each constant that too many modules have under one name."""
    modules: dict[str, int] = defaultdict(int)
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("packages/*/src/**/*.py")]:
        for statement in ast.parse(path.read_bytes()).body:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
            targets += [statement.target] if isinstance(statement, ast.AnnAssign) else []
            for target in targets:
                if isinstance(target, ast.Name):
                    modules[target.id] += not target.id.startswith("_")
    for name, count in sorted(modules.items()):
        if count > MODULES and name not in CONVENTIONS:
            yield f"{name} is a constant of {count} modules (at most {MODULES}): say what each limits"


def main() -> int:
    """Prints the limits that rooms exceed; stores lower figures with `--write`."""
    held = json.loads(OPEN.read_text()) if OPEN.exists() else {}
    common = list(list_common_constants())
    print(*common, sep="\n", end="\n" * bool(common))
    exceeded = len(common)
    present: dict[str, dict[str, float]] = {}
    for room, nodes in sorted(read_rooms().items()):
        for (what, limit), figure in zip(LIMITS.items(), measure(nodes), strict=True):
            allowed = max(limit, held.get(room, {}).get(what, limit if held else math.inf))
            if figure > allowed:
                exceeded += 1
                print(f"{room}: {figure:.1f} {what} (at most {allowed:g})")
            elif figure > limit:
                present.setdefault(room, {})[what] = math.ceil(10 * figure) / 10
    if "--write" in sys.argv and not exceeded:
        OPEN.write_text(json.dumps(present, indent=1) + "\n")
    return min(exceeded, 1)


if __name__ == "__main__":
    sys.exit(main())
