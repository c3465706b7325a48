"""Audits every mechanism on the whole default table and writes rows: `make audit`.

In: the installed package. Out: a JSON row per mechanism and check in benchmarks/rows/audit.jsonl; exit code 1 where a
claim is violated or cannot be checked.
Not here: the checks (`textveil_bench.audit.run`), and speed (run.py).
"""

import argparse
import sys
import warnings
from functools import partial

import rowfiles
from report import ROWS
from rich.console import Console
from rich.progress import track

from textveil.config import registry
from textveil.config.layers import resolve
from textveil_bench.audit.configured import ConfiguredBuild
from textveil_bench.audit.run import CHECKS, audit
from textveil_bench.circumstances import read_circumstances

AUDIT = ROWS.with_name("audit.jsonl")


def overrides(name: str) -> dict[str, str]:
    """The options of an audit; a mechanism that draws among codes gets those of a general book."""
    codes = {"table.codes": "24"} if registry.find_entry("mechanism", name).codes else {}
    return {"mechanism.name": name, **codes}


def main() -> int:
    """Runs the audit and appends a row per finding, as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="fewer words and draws")
    parser.add_argument("names", nargs="*", help="mechanisms (default: all)")
    options = parser.parse_args()
    names = options.names or registry.list_names("mechanism")
    builds = {
        name: ConfiguredBuild(
            name=name, resolve=partial(resolve, overrides=overrides(name), complete=False)
        )
        for name in names
    }
    shared = {**read_circumstances(), "small": options.small}
    broken = 0
    found = track(
        audit(*builds.values(), small=options.small),
        total=len(builds) * len(CHECKS),
        description="auditing",
        console=Console(stderr=True),
        refresh_per_second=0.2,
    )
    for each in found:
        row = {**each.to_json(), **shared}
        if each.check != "build":  # else there is neither a table nor a budget
            config = builds[each.mechanism].config
            row |= {"table": config.table.name, "epsilon": config.epsilon}
        rowfiles.keep(AUDIT, [row], ("mechanism", "check"))
        print(f"{each.mechanism}: {each.check}: {each.verdict}: {each.why}")
        broken += each.has_failed
    return 1 if broken else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what options are warned of is no finding
    sys.exit(main())
