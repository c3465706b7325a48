"""What privatizing in a new process loads: numpy and ONNX Runtime, and none of the heavy libraries of extras."""

import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "scipy", "sklearn", "pyarrow", "matplotlib"}

PROGRAM = """
import sys, textveil
for name in sys.argv[1].split():
    veil = textveil.Privatizer(name, epsilon=20)
    assert veil.privatize("Anna Kowalska owes the bank forty dollars since Monday, in zyxqorvian.").text
print(*sys.modules)
"""

SELECTING = "rankcape cape exponential santext santext+ custext custext+ rantext krr placeholder"
PERTURBING = "noise polar laplace stencil d-chi-stencil"


@pytest.mark.parametrize(
    "names", ["", SELECTING, PERTURBING], ids=["nothing", "selecting", "perturbing"]
)
def test_privatizing_loads_nothing_heavy(names):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, names], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert not HEAVY & loaded
    assert bool(names) == ("textveil.table.nearest" in loaded)
