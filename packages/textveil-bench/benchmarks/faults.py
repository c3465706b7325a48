"""Plants faults in the source, one at a time, and tells which the quick tests catch.

In: the source and the tests of this working tree, which are copied. Out: rows in benchmarks/rows/faults.jsonl.
Not here: broken mechanisms, which the statistical tests must catch (`tests.broken`), and what slow tests catch.

A fault is a comparison, a connective, a number, a condition, an operator, a returned value or a statement that is
changed inside a function. Which ones there are, a seed decides: at least two a room, the others by the size of rooms.
For each one the tests of the module's own file run first, then those of files in its room that name the module (where
there are none, some of the room), until one fails or the processor time is used up. So a fault that is not caught here
may be caught by the whole suite. Some faults change nothing that can be seen, and no test catches those.

A process collects the tests of a room once, and a copy of it (a fork) has each fault, in the functions that are
imported as well as in the copied file, which other processes import.

A run goes on where one of the same commit was stopped. One after tests were changed (`--again`) plants the same faults,
and asks first the test that caught each; `--anew` draws the faults of the present source.

    python benchmarks/faults.py [--again | --anew] [--seconds 8] [--processes 1] [--rooms detect table]
"""

import argparse
import ast
import gc
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from types import CodeType, FunctionType
from typing import Any, NamedTuple, NoReturn

import pytest

from textveil_bench.circumstances import read_circumstances

ROOT = Path(__file__).resolve().parents[3]
ROWS = Path(__file__).resolve().parent / "rows" / "faults.jsonl"
BENCH = "packages/textveil-bench"
SEED, COUNT, FEWEST, MOST = 1, 100, 2, 6
LANE = "not slow and not browser"

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}


class Fault(NamedTuple):
    """A place in the source, and what is written there instead.

    Args:
        file: relative to the root.
        function: in which it stands, with the classes around it; empty for a module's own statements.
        line: on which it begins, in the source it was drawn from.
        kind: of change.
        before: the source there.
        after: what replaces it.
        span: first and last byte in the file; only for a fault found in the present source.
    """

    file: str
    function: str
    line: int
    kind: str
    before: str
    after: str
    span: tuple[int, int]


def rooms() -> dict[str, list[Path]]:
    """The modules of each room; the bench is one."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted((ROOT / "src/textveil").glob("*/**/*.py")):
        found[path.relative_to(ROOT / "src/textveil").parts[0]].append(path)
    found["bench"] = sorted((ROOT / BENCH / "src").rglob("*.py"))
    return dict(found)


def changed(node: ast.AST) -> tuple[str, ast.AST] | None:
    """What can be changed at a node: the kind of change and the new node."""
    new: Any = copy(node)
    match node:
        case ast.Compare(ops=[operator]):
            new.ops = [COMPARED[type(operator)]()]
            return "comparison", new
        case ast.BoolOp(op=operator):
            new.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
            return "connective", new
        case ast.Constant(value=bool(value)):
            return "number", ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return "number", ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return "not dropped", operand
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return "not added", ast.UnaryOp(ast.Not(), test)
        case ast.BinOp(op=operator, left=left) if type(operator) in COMPUTED and not isinstance(
            left, ast.Constant | ast.JoinedStr
        ):
            new.op = COMPUTED[type(operator)]()
            return "operator", new
        case ast.Return(value=ast.expr() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            return "returned value", ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            return "statement", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return "statement", ast.Pass()
    return None


def faults(path: Path) -> Iterator[Fault]:
    """All that could be planted in a file. What stands in annotations and in formatted strings is left alone."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def below(node: ast.AST, where: tuple[str, ...], function: bool) -> Iterator[Fault]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            where = (*where, node.name)
            function = not isinstance(node, ast.ClassDef)
        if function and (new := changed(node)) is not None:
            at: Any = node.test if isinstance(node, ast.If | ast.IfExp | ast.While) else node
            first = starts[at.lineno - 1] + at.col_offset
            last = starts[at.end_lineno - 1] + at.end_col_offset
            after = ast.unparse(ast.fix_missing_locations(new[1]))
            if isinstance(at, ast.expr):
                after = f"({after})"
            before = source[first:last].decode()
            name = path.relative_to(ROOT).as_posix()
            yield Fault(name, ".".join(where), at.lineno, new[0], before, after, (first, last))
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "decorator_list", "defaults", "kw_defaults"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from below(child, where, function)

    yield from below(ast.parse(source), (), False)


def drawn() -> list[tuple[str, Fault]]:
    """The faults of the seed, with their rooms."""
    rng = random.Random(SEED)
    lines = {
        room: sum(len(path.read_bytes().splitlines()) for path in paths)
        for room, paths in rooms().items()
    }
    spare = COUNT - FEWEST * len(lines)
    shares = {room: spare * many / sum(lines.values()) for room, many in lines.items()}
    many = {room: FEWEST + int(share) for room, share in shares.items()}
    by_rest = sorted(shares, key=lambda room: int(shares[room]) - shares[room])
    for room in by_rest[: COUNT - sum(many.values())]:
        many[room] += 1
    found = []
    for room, paths in rooms().items():
        kinds: dict[str, list[Fault]] = defaultdict(list)
        for path in paths:
            for fault in faults(path):
                kinds[fault.kind].append(fault)
        for _ in range(many[room]):
            places = kinds[rng.choice(sorted(kinds))]
            found.append((room, places.pop(rng.randrange(len(places)))))
    return found


def present(row: dict[str, Any]) -> Fault | None:
    """The fault of a row in the present source, if what it changes is still there."""
    path = ROOT / row["file"]
    same = [
        fault
        for fault in (faults(path) if path.exists() else ())
        if all(row[key] == getattr(fault, key) for key in ("function", "kind", "before", "after"))
    ]
    return min(same, key=lambda fault: abs(fault.line - row["line"]), default=None)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def asked(room: str, file: str) -> list[str]:
    """The files with tests for a module, nearest first."""
    bench = room == "bench"
    parts = Path(file).with_suffix("").parts[4 if bench else 2 :]
    names = [part for part in parts if part != "__init__"]
    package = "textveil_bench" if bench else "textveil"
    folder = ROOT / BENCH / "bench_tests" if bench else ROOT / "tests" / room
    own = {f"test_{name}.py" for name in (*names[1 - bench :], "_".join(names[-2:]))}
    beside = folder.joinpath(*names[:-1]) if bench else folder
    imported = re.compile(
        rf"{package}\.{re.escape('.'.join(names))}\b"
        rf"|from {package}\.{re.escape('.'.join(names[:-1]))} import [^\n]*\b{names[-1]}\b"
        if len(names) > 1
        else rf"{package}(?:\.| import ){names[0]}\b"
    )
    word = re.compile(rf"\b{names[-1]}\b")
    everywhere = sorted(
        path
        for root in (ROOT / "tests", ROOT / BENCH / "bench_tests")
        for path in root.rglob("test_*.py")
    )

    def rank(path: Path) -> int:
        if folder in path.parents or path.parent == folder:
            if path.name in own:
                return 0
            if imported.search(_text(path)):
                return 1
            if beside in path.parents:
                return 2 if word.search(_text(path)) else 3
            return 4 if word.search(_text(path)) or not bench else 9
        return 5 if imported.search(_text(path)) else 9

    ranked = sorted((rank(path), path) for path in everywhere)
    for ranks in ((0, 1, 2), (3, 4), (5,)):
        if found := [path for at, path in ranked if at in ranks]:
            return [path.relative_to(ROOT).as_posix() for path in found[:MOST]]
    return []


def copied(folder: Path) -> Path:
    """A copy of the working tree, with what is built into the source."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    built = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src/textveil/data").rglob("*")
        if path.is_file()
    ]
    for name in {*names, *built} - {""}:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


class Planter:
    """A plugin of pytest that runs the collected tests for one fault after another, each in a copy of the process.

    Args:
        tree: the copied working tree.
        rows: the faults, each with the file it is in, the new source, and the tests that are asked, in their order.
        seconds: of processor time for a fault.
        found: the file for what became of them.
    """

    def __init__(
        self, tree: Path, rows: Sequence[dict[str, Any]], seconds: int, found: Path
    ) -> None:
        self.tree, self.rows, self.seconds, self.found = tree, rows, seconds, found
        self._failed: str | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Runs what is collected once for each fault, and once without any what seemed to catch one."""
        found = [self._judged(session, row) for row in self.rows]
        caught = sorted({each["test"] for each in found if each["test"]})
        for test in caught:
            if self._judged(session, {"source": None, "asked": [test]})["test"]:
                for each in found:
                    if each["test"] == test:
                        each["ended"] = "the test fails without a fault"
        self.found.write_text(json.dumps(found))
        return True

    def _judged(self, session: pytest.Session, row: dict[str, Any]) -> dict[str, Any]:
        """What the tests say of a fault."""
        ranks = {name: number for number, name in enumerate(row["asked"])}
        items = [
            item for item in session.items if {item.nodeid, item.nodeid.split("::")[0]} & {*ranks}
        ]
        items.sort(
            key=lambda item: ranks.get(item.nodeid, ranks.get(item.nodeid.split("::")[0], 0))
        )
        path = self.tree / row.get("file", "")
        source, stamp = b"", 0.0
        if row["source"] is not None:
            source, stamp = path.read_bytes(), path.stat().st_mtime
            path.write_text(row["source"], encoding="utf-8")
            changed = stamp + 1000 + hash(row["source"]) % 10**6  # or what was compiled is taken
            os.utime(path, (changed, changed))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                self._asked(items, None if row["source"] is None else path, row["source"], writing)
            finally:
                os._exit(5)
        os.close(writing)
        with os.fdopen(reading) as said:
            _, status, used = os.wait4(child, 0)
            test = said.readline().strip() or None
        if row["source"] is not None:
            path.write_bytes(source)
            os.utime(path, (stamp, stamp))
        ended = {
            0: "caught" if test else "all passed",
            3: "it could not be planted",
            5: "the run broke",
        }
        return {
            "test": test,
            "ended": ended.get(os.waitstatus_to_exitcode(status), "time was up"),
            "seconds": round(used.ru_utime + used.ru_stime, 1),
        }

    def _asked(
        self, items: Sequence[pytest.Item], path: Path | None, source: str | None, said: int
    ) -> NoReturn:
        """Runs tests until one fails, whose name it writes; ends the process."""
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 1))
        if path is not None and source is not None and not replaced(path, source):
            os._exit(3)
        for item, following in zip(items, [*items[1:], None], strict=False):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed is not None:
                os.write(said, self._failed.encode())
                os._exit(0)
            if sum(os.times()[:4]) > self.seconds:
                os._exit(4)
        os._exit(0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remembers the first test that failed."""
        if report.failed and self._failed is None:
            self._failed = report.nodeid


def replaced(path: Path, source: str) -> bool:
    """Gives the functions of a file that are imported the code that its new source has for them."""
    codes: dict[tuple[str, int], CodeType] = {}

    def known(code: CodeType) -> None:
        for each in code.co_consts:
            if isinstance(each, CodeType):
                codes[each.co_qualname, each.co_firstlineno] = each
                known(each)

    known(compile(source, str(path), "exec", dont_inherit=True))
    gc.unfreeze()  # or what was there before the tests is not among all objects
    for each in gc.get_objects():
        # isinstance() asks what stands for something else, which may raise
        if type(each) is FunctionType and each.__code__.co_filename == str(path):
            code = codes.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
            if code is not None:
                try:
                    each.__code__ = code
                except ValueError:  # it has one variable of the function around it less
                    return False
    return True


def planted(fault: Fault) -> str:
    """The source of its file with a fault; all lines stay where they are."""
    source, (first, last) = (ROOT / fault.file).read_bytes(), fault.span
    gone = "\n" * fault.before.count("\n")
    after = fault.after[:-1] + gone + ")" if fault.after.endswith(")") else fault.after + gone
    return (source[:first] + after.encode() + source[last:]).decode()


def ran(tree: Path, rows: Sequence[dict[str, Any]], seconds: int) -> list[dict[str, Any]]:
    """What became of faults, of which a process of its own asks the tests."""
    source = [tree / "src", tree / BENCH / "src", tree]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, source)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    wanted, found = tree / "faults.wanted.json", tree / "faults.found.json"
    wanted.write_text(json.dumps(rows))
    found.unlink(missing_ok=True)
    program = tree / BENCH / "benchmarks" / "faults.py"
    command = [sys.executable, str(program), "--seconds", str(seconds), "--within", str(tree)]
    with (tree / "faults.said").open("wb") as said:
        subprocess.run(command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=said)
    if not found.exists():
        raise SystemExit((tree / "faults.said").read_text()[-2000:])
    result: list[dict[str, Any]] = json.loads(found.read_text())
    return result


def within(tree: Path, seconds: int) -> None:
    """Collects the tests that a copied tree's faults need, and asks them."""
    rows = json.loads((tree / "faults.wanted.json").read_text())
    files = dict.fromkeys(name.split("::")[0] for row in rows for name in row["asked"])
    arguments = ["-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-m", LANE, *files]
    pytest.main(arguments, plugins=[Planter(tree, rows, seconds, tree / "faults.found.json")])


def main(arguments: Sequence[str] | None = None) -> None:
    """Plant all faults, and store what became of those of a room as soon as it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="after tests were changed")
    parser.add_argument("--anew", action="store_true", help="draw the faults, too")
    parser.add_argument("--seconds", type=int, default=8, help="processor time for a fault")
    parser.add_argument("--processes", type=int, default=1, help="rooms at once")
    parser.add_argument("--rooms", nargs="*", help="only these")
    parser.add_argument("--within", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.within is not None:
        within(given.within, given.seconds)
        return
    if ROWS.exists() and not given.anew:
        rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    else:
        names = Fault._fields[:-1]
        rows = [
            {"room": room, **{name: getattr(fault, name) for name in names}}
            for room, fault in drawn()
        ]
    result = "again" if given.again else "first"
    about = read_circumstances("pytest")

    def stored() -> None:
        ROWS.write_text("".join(json.dumps(each, sort_keys=True) + "\n" for each in rows))

    def judged(tree: Path, mine: Sequence[dict[str, Any]]) -> None:
        """Asks the tests of some faults; those that a known test caught, this one first."""
        told: dict[str, dict[str, Any]] = {}
        left = [(row, fault) for row in mine if (fault := present(row)) is not None]
        for known in (True, False) if given.again else (False,):
            wanted = [
                {
                    "file": fault.file,
                    "source": planted(fault),
                    "asked": [row["first"]["test"]] if known else asked(row["room"], row["file"]),
                }
                for row, fault in left
            ]
            for (row, _), found in zip(left, ran(tree, wanted, given.seconds), strict=True):
                told[json.dumps(row)] = found
                print(row["file"], row["line"], row["kind"], found, flush=True)
            left = [each for each in left if told[json.dumps(each[0])]["ended"] != "caught"]
            if not left:
                break
        for row in mine:
            found = told.get(json.dumps(row), {"test": None, "ended": "no longer there"})
            row[result] = {**found, **{key: about[key] for key in ("commit", "time")}}
            row |= {key: about[key] for key in ("python", "machine", "versions")}
        stored()

    by_room: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if given.again and row.get("first", {}).get("ended") != "caught":
            continue
        if result not in row or row[result]["commit"].rstrip("+") != about["commit"].rstrip("+"):
            by_room[row["room"]].append(row)
    chosen = [mine for room, mine in by_room.items() if not given.rooms or room in given.rooms]
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(given.processes) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.processes):
            trees.put(copied(Path(made).resolve() / str(number)))

        def one(mine: Sequence[dict[str, Any]]) -> None:
            tree = trees.get()
            try:
                judged(tree, mine)
            finally:
                trees.put(tree)

        list(pool.map(one, chosen))
    counts = Counter((row["room"], row[result]["ended"]) for mine in chosen for row in mine)
    for (room, ended), count in sorted(counts.items()):
        print(f"{room:12} {ended:32} {count}")


if __name__ == "__main__":
    main()
