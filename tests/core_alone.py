"""What a user of the core has: `make core` runs this in a fresh environment, from outside the repository.

No extra is installed, nothing heavy is imported, and the whole is small on disk.
"""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import distributions
from pathlib import Path

from textveil import Privatizer
from textveil.cli import main

HEAVY = {"matplotlib", "pyarrow", "scipy", "sklearn", "torch", "transformers"}
LARGEST = 340
"""MiB of the environment, pip included."""

TEXT = "Anna owes the bank nine hundred pounds"
PROMPT = "Ask Maria Silva (maria@example.org) about the lease"
COMMANDS = (
    ["protect", PROMPT],
    ["privatize", TEXT],
    ["privatize", TEXT, "--mechanism", "codebook", "--codes", "24", "--epsilon", "4"],
    ["risk", TEXT],
    ["groups", TEXT],
    ["list", "mechanisms"],
    ["list", "measures"],
    ["demo"],
)

result = Privatizer("rankcape", epsilon=8).privatize(TEXT)
assert 7.9 < result.guarantee.epsilon_ldp <= 8, result.guarantee
for arguments in COMMANDS:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as said:
        code = main(arguments)
    assert code == 0, (arguments[0], said.getvalue())
    assert out.getvalue().strip(), arguments[0]
    assert "maria@example.org" not in out.getvalue(), arguments[
        0
    ]  # a drawn name may be the original, by chance

for arguments in (["attack", "letters.txt"], ["explain", "linkage"]):
    with redirect_stderr(io.StringIO()) as said:
        code = main(arguments)
    assert code == 2, arguments[0]
    assert "is in textveil-bench: pip install textveil-bench" in said.getvalue()

loaded = HEAVY & {name.partition(".")[0] for name in sys.modules}
assert not loaded, f"imported without need: {sorted(loaded)}"
installed = HEAVY & {each.name.replace("scikit-learn", "sklearn") for each in distributions()}
assert not installed, f"installed without need: {sorted(installed)}"
size = sum(
    path.stat().st_size
    for path in Path(sys.prefix).rglob("*")
    if path.is_file() and not path.is_symlink()
)
assert size < LARGEST << 20, f"the environment has {size >> 20} MiB, and may have {LARGEST}"
print(
    f"Python {sys.version.partition(' ')[0]}: {len(COMMANDS)} commands, {size >> 20} MiB installed"
)
