"""What is installed without an extra: everything imports, a text is privatized, and the rest says what to install."""

import json
import pickle
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from textveil.config import extras
from textveil.errors import ConfigError, MissingExtra

ROOT = Path(__file__).parents[2]

PROGRAM = """
import importlib, io, json, pkgutil, sys
from contextlib import redirect_stderr, redirect_stdout
from textveil.config.extras import EXTRAS
from textveil.errors import MissingExtra

# Importing None fails as what is not installed does. huggingface-hub brings httpx2 along, and needs it.
sys.modules.update(dict.fromkeys({*EXTRAS, "textveil_bench"} - {"httpx2"}))
import textveil
from textveil.config import registry

registry._find_points = lambda group, path: ()  # nor has another distribution registered anything

for each in pkgutil.walk_packages(textveil.__path__, "textveil."):
    if each.name not in ("textveil.__main__", "textveil.models.torch_networks", "textveil.evaluate.attack.context_network"):  # foreign: what is for torch
        try:
            importlib.import_module(each.name)
        except MissingExtra:  # an integration is for those who have the tool
            assert each.name.startswith("textveil.integrations."), each.name

from textveil.cli import main

found = []
for arguments in json.load(sys.stdin):
    said = io.StringIO()
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(said):
        code = main(arguments)
    found.append([code, out.getvalue(), said.getvalue()])
print(json.dumps(found))
"""

TEXT = "Anna owes the bank nine hundred pounds"
NOISE = ["--mechanism", "noise", "--epsilon", "70", "--table", "minilm-s"]


@pytest.mark.slow
def test_what_works_without_an_extra_and_what_the_rest_says(tmp_path):
    texts, table = tmp_path / "a.txt", tmp_path / "a.parquet"
    texts.write_text(f"{TEXT}\n")
    table.write_bytes(b"PAR1")
    works = [
        ["privatize", TEXT, *NOISE],
        ["privatize", TEXT],
        ["risk", TEXT, *NOISE],
        ["list", "attacks"],
        ["list", "measures"],
        ["explain", "learned"],
        ["table", "calibrate"],
    ]
    url = ["--upstream", "http://127.0.0.1:9/v1"]
    refused = {
        "evaluate": [["risk", TEXT, *NOISE, "--public", str(texts)]],
        "files": [
            ["corpus", "run", str(table), "--id", "n", "--output", f"{tmp_path / 'out'}/", *NOISE]
        ],
        "gateway": [["gateway", *url]],
        "models": [["chat", TEXT, *url, "--model", "m"], ["repair", TEXT, *url, "--model", "m"]],
        "torch": [
            ["privatize", TEXT, *NOISE, "-o", "table.device=cuda"],
            [
                "privatize",
                TEXT,
                *NOISE,
                "-o",
                "protect.importance=saliency",
                "-o",
                "protect.classifier=a/b",
            ],
            ["table", "build", "a/b", "--output", f"{tmp_path / 'made'}"],
        ],
        "gliner": [["privatize", TEXT, *NOISE, "-o", "protect.detectors=gliner:a/b"]],
        "presidio": [["privatize", TEXT, *NOISE, "-o", "protect.detectors=presidio"]],
        "spacy": [["privatize", TEXT, *NOISE, "-o", "protect.detectors=spacy:en"]],
        "stanza": [["privatize", TEXT, *NOISE, "-o", "protect.detectors=stanza:en"]],
    }
    elsewhere = [
        (["attack", str(texts), *NOISE], "`textveil attack` is in"),
        (["measure", str(texts), *NOISE], "`textveil measure` is in"),
        (["audit", "krr", "--small"], "`textveil audit` is in"),
        (["explain", "linkage"], "the attack 'linkage' is in"),
        (["explain", "bleu"], "the measure 'bleu' is in"),
        (["table", "calibrate", str(texts), "--plot", f"{tmp_path / 'a.png'}"], "this needs"),
    ]
    commands = [
        *works,
        *(each for some in refused.values() for each in some),
        *(each for each, _ in elsewhere),
    ]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
    )
    found = iter(json.loads(ran.stdout))
    for arguments in works:
        code, out, said = next(found)
        assert code == 0, (arguments, said)
        assert out
    for extra, some in refused.items():
        for arguments in some:
            code, out, said = next(found)
            assert (code, out) == (2, ""), arguments
            assert re.fullmatch(
                rf"textveil: error: this needs [\w-]+: pip install 'textveil\[{extra}\]'\n", said
            ), said
    for arguments, what in elsewhere:
        code, out, said = next(found)
        assert (code, out) == (2, ""), arguments
        where = r"textveil-bench: pip install '?textveil-bench'?"
        assert re.fullmatch(rf"textveil: error: {what} {where}\n", said), said


def test_the_table_agrees_with_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        re.match(r"[\w-]+", requirement)[0]: extra  # type: ignore[index]
        for extra, requirements in project["optional-dependencies"].items()
        if extra not in ("all", "dev", "docs")
        for requirement in requirements
        if not requirement.startswith("textveil[")  # what another extra installs
    }
    distributions = {
        name: {each.lower() for each in found} for name, found in packages_distributions().items()
    }
    for library, installs in extras.EXTRAS.items():
        known = distributions.get(library, {library}) | {extras.PACKAGES.get(library, library)}
        (extra,) = {declared[name] for name in known if name in declared}
        assert installs == f"textveil[{extra}]"
    assert {f"textveil[{extra}]" for extra in declared.values()} == set(extras.EXTRAS.values())


def test_a_missing_library_is_one_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "sklearn.pipeline", raising=False)  # of another test
    with pytest.raises(
        MissingExtra, match=r"^this needs scikit-learn: pip install 'textveil\[library\]'$"
    ) as caught:
        extras.import_library("sklearn.pipeline")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, ConfigError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(MissingExtra):
        extras.require("json", "sklearn")
    with (
        pytest.raises(ModuleNotFoundError, match="no_such_library") as other,
        extras.explain_missing(),
    ):
        import no_such_library  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(other.value, MissingExtra)
    extras.require("json")
