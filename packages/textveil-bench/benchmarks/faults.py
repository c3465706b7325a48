"""Plants faults in the source, one at a time, and tells which the quick tests catch.

In: the source and the tests of this working tree, which are copied. Out: rows in benchmarks/rows/faults.jsonl.
Not here: broken mechanisms, which the statistical tests must catch (`tests.broken`), and what slow tests catch.

A fault is a comparison, a connective, a number, a condition, an operator, a returned value or a statement that is
changed. Which ones there are, a seed decides: at least two a room, the others by the size of rooms. For each one the
tests of the module's own file run first, then those of its room that name the module, the rest of its room, and tests
elsewhere that name it, until one fails or the processor time is used up. So a fault that is "not caught" here may be
caught by the whole suite. Some faults change nothing that can be seen, and no test catches those.

A run after the tests were changed (`--again`) plants the same faults, and asks first the test that caught it.

    python benchmarks/faults.py [--again] [--seconds 60] [--processes 1]
"""

import argparse
import ast
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
from copy import deepcopy
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from textveil_bench.circumstances import circumstances

ROOT = Path(__file__).resolve().parents[3]
ROWS = Path(__file__).resolve().parent / "rows" / "faults.jsonl"
BENCH = "packages/textveil-bench"
SEED, COUNT, FEWEST = 1, 100, 2
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
    new: Any = deepcopy(node)
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

    def within(node: ast.AST, where: tuple[str, ...]) -> Iterator[Fault]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            where = (*where, node.name)
        if where and (new := changed(node)) is not None:
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
            if field in {"annotation", "returns", "decorator_list"}:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                    yield from within(child, where)

    yield from within(ast.parse(source), ())


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
    own = {f"test_{names[-1]}.py", f"test_{'_'.join(names[-2:])}.py"}
    near = folder.joinpath(*names[:-1]) if bench else folder
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
            if near in path.parents:
                return 2 if word.search(_text(path)) else 3
            return 4 if word.search(_text(path)) or not bench else 9
        return 5 if imported.search(_text(path)) else 9

    ranked = sorted((rank(path), path) for path in everywhere)
    return [path.relative_to(ROOT).as_posix() for at, path in ranked if at < 9]


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


def ran(tree: Path, tests: Sequence[str], seconds: int) -> tuple[str | None, float, int]:
    """The first test that fails, the processor time that was used, and the status of pytest."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-m", LANE]
    command += ["-p", "no:cacheprovider", *tests]
    source = [tree / "src", tree / BENCH / "src", tree]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, source)),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds + 5))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        failed = re.search(r"^(?:FAILED|ERROR) ([^\n]+?)(?: - |$)", said.read(), re.MULTILINE)
    name = failed[1] if failed is not None and process.returncode in {1, 2, 3, 4} else None
    return name, used.ru_utime + used.ru_stime, process.returncode


def planted(tree: Path, fault: Fault, tests: Sequence[str], seconds: int) -> dict[str, Any]:
    """What the tests say of a tree with this fault: the test that fails, if one does."""
    path = tree / fault.file
    source, stamp = path.read_bytes(), path.stat().st_mtime
    first, last = fault.span
    path.write_bytes(source[:first] + fault.after.encode() + source[last:])
    changed = stamp + 1000 + hash(fault) % 10**6  # or Python takes what it compiled before
    os.utime(path, (changed, changed))
    try:
        test, used, status = ran(tree, tests, seconds)
    finally:
        path.write_bytes(source)
        os.utime(path, (stamp, stamp))
    return {
        "test": test,
        "ended": "caught" if test else "all passed" if status == 0 else "time was up",
        "seconds": round(used, 1),
        "status": status,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Plant all faults, and store what became of each as soon as it is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="those of the stored rows")
    parser.add_argument("--seconds", type=int, default=60, help="processor time for a fault")
    parser.add_argument("--processes", type=int, default=1, help="faults at once")
    given = parser.parse_args(arguments)
    if given.again:
        rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    else:
        names = Fault._fields[:-1]
        rows = [
            {"room": room, **{name: getattr(fault, name) for name in names}}
            for room, fault in drawn()
        ]
    result = "again" if given.again else "first"
    about = circumstances("pytest")
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(given.processes) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.processes):
            trees.put(copied(Path(made) / str(number)))

        def judged(row: dict[str, Any]) -> None:
            fault = present(row)
            if fault is None:
                row[result] = {"test": None, "ended": "no longer there"}
                return
            tree = trees.get()
            known = row.get("first", {}).get("test") if given.again else None
            tests = asked(row["room"], row["file"])
            found = planted(tree, fault, [known], given.seconds) if known else None
            if found is None or found["test"] is None or found["status"] == 4:
                found = planted(tree, fault, tests, given.seconds)
            trees.put(tree)
            row[result] = {**found, **{key: about[key] for key in ("commit", "time")}}
            where = f"{row['file']}:{fault.line}"
            print(f"{where}: {row['kind']}: {found['ended']}: {found['test']}", flush=True)
            ROWS.write_text("".join(json.dumps(each, sort_keys=True) + "\n" for each in rows))

        list(pool.map(judged, rows))
        tree = trees.get()
        wrong = {
            row[result]["test"]
            for row in rows
            if row[result]["test"] and ran(tree, [row[result]["test"]], given.seconds)[0]
        }
    for row in rows:
        row |= {key: about[key] for key in ("python", "machine", "versions")}
        if row[result]["test"] in wrong:
            row[result]["ended"] = "the test fails without a fault"
    ROWS.write_text("".join(json.dumps(each, sort_keys=True) + "\n" for each in rows))
    counts = Counter((row["room"], row[result]["ended"]) for row in rows)
    for (room, ended), count in sorted(counts.items()):
        print(f"{room:12} {ended:32} {count}")


if __name__ == "__main__":
    main()
