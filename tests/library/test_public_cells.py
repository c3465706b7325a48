"""The public map of a text to its cell: of that text alone, bit for bit, whatever is beside it.

A vote counts once only if that holds. Products of bytes are exact on processors without VNNI, too: see
`tests/models/test_encoder.py`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest
from training.notes import write_notes

from textveil.errors import ConfigError, InputError
from textveil.library import features as features_module
from textveil.library import library as library_module
from textveil.library.features import FeatureMap, LinearMap
from textveil.library.library import LEAST_POOL, Library
from textveil.models import load_sentences

TEXTS = [note["text"] for note in write_notes(2, 5000)] + [
    "",
    "...",
    "Déjà vu in 東京 🙂",
    "[SEP] [CLS]",
    "word",
    "The kettle is late. " * 60,
]
LONG = "Nobody told the depot about the umbrella, the radio and the garden hose. " * 80
"""More than 1,000 words."""

Find = Callable[[Library, list[str]], np.ndarray]


def find_features(library: Library, texts: list[str]) -> np.ndarray:
    return library.features.compute(texts)


def find_all_cells(library: Library, texts: list[str]) -> np.ndarray:
    """Cells of the finest level, and of the others by the same features."""
    *others, finest = library.levels
    features = library.features.compute(texts)
    cells = [
        *(library.assign(features, level) for level in others),
        library.find_cells(texts, finest),
    ]
    return np.stack(cells, axis=1)


def find_dependence(library: Library, find: Find) -> list[str]:
    """Names the companies of texts in which a text is not what it is alone."""
    alone = np.concatenate([find(library, [text]) for text in TEXTS])
    order = np.random.default_rng(0).permutation(len(TEXTS))
    companies = {
        "together": find(library, TEXTS),
        "again": find(library, TEXTS),
        "reversed": find(library, TEXTS[::-1])[::-1],
        "in another order": find(library, [TEXTS[i] for i in order])[np.argsort(order)],
        "beside a long text": find(library, [LONG, *TEXTS])[1:],
        "before a long text": find(library, [*TEXTS, LONG])[:-1],
        "twice": find(library, [*TEXTS, *TEXTS])[len(TEXTS) :],
    }
    return [name for name, found in companies.items() if not np.array_equal(found, alone)]


@pytest.mark.parametrize("find", [find_features, find_all_cells])
def test_a_text_alone_and_in_any_company(notes_library, find):
    assert find_dependence(notes_library, find) == []


class Centred(FeatureMap):
    """A defect: features less their mean over the batch."""

    def compute(self, texts, vectors=None):
        found = super().compute(texts, vectors)
        return found - found.mean(axis=0).astype(np.int16)


def test_a_map_that_looks_at_the_batch_is_found(notes_library):
    values = {each.name: getattr(notes_library.features, each.name) for each in fields(FeatureMap)}
    twin = replace(notes_library, features=Centred(**values))
    assert "together" in find_dependence(twin, find_all_cells)


def test_chunks_do_not_matter(notes_library, monkeypatch):
    whole = find_all_cells(notes_library, TEXTS)
    for module in (library_module, features_module):
        monkeypatch.setattr(module, "TEXTS_AT_ONCE", 3)
    assert np.array_equal(find_all_cells(notes_library, TEXTS), whole)


def test_threads_share_a_library(notes_library):
    whole = find_all_cells(notes_library, TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: find_all_cells(notes_library, TEXTS), range(4)):
            assert np.array_equal(found, whole)


def test_another_process_with_other_threads(notes_library, tmp_path):
    """Sums of whole numbers are exact, so that no library of linear algebra changes them."""
    path = tmp_path / "notes.library"
    notes_library.save(path)
    program = (
        "import json, sys\nfrom textveil import Library\nlibrary = Library.read(sys.argv[1])\n"
        "texts = json.load(sys.stdin)\n"
        "print(json.dumps([library.find_cells(texts, each).tolist() for each in library.levels]))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "4", "OPENBLAS_CORETYPE": "Haswell"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        input=json.dumps(TEXTS),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = np.array(json.loads(done.stdout)).T
    assert np.array_equal(found, find_all_cells(notes_library, TEXTS))


def test_texts_that_are_no_unicode_are_refused(notes_library):
    with pytest.raises(InputError, match="valid Unicode"):
        notes_library.find_cells(["\ud800"], notes_library.levels[0])


# ---- linear maps -----------------------------------------------------------------------------------------


def test_scores_are_exact():
    rng = np.random.default_rng(1)
    linear = LinearMap.build(rng.normal(size=(7, 300)), rng.normal(size=7))
    features = rng.integers(-(1 << 15), 1 << 15, (20, 300), dtype=np.int16)
    exact = features.astype(object) @ linear.weights.T.astype(object) + linear.offsets.astype(
        object
    )
    order = rng.permutation(300)
    shuffled = LinearMap(weights=linear.weights[:, order], offsets=linear.offsets)
    for found in (linear.score(features), shuffled.score(features[:, order])):
        assert (found.astype(object) == exact).all()
    rows = np.concatenate([linear.score(features[i : i + 1]) for i in range(20)])
    assert np.array_equal(rows, linear.score(features))


def test_sums_that_float64_cannot_hold_are_refused():
    for weights, offset in ((1 << 38, 0), (1 << 37, 1 << 53), (0, 1 << 53)):
        with pytest.raises(ConfigError, match="too large"):
            LinearMap(weights=np.array([[weights]]), offsets=np.array([offset]))
    LinearMap(weights=np.array([[(1 << 38) - 1]]), offsets=np.array([0]))


def test_the_first_of_equal_cells_is_taken(notes_library):
    level = replace(
        notes_library.levels[0],
        map=LinearMap(
            weights=np.zeros((4, notes_library.features.width), np.int64),
            offsets=np.array([3, 7, 7, 1]),
        ),
    )
    assert notes_library.find_cells(TEXTS[:3], level).tolist() == [1, 1, 1]


# ---- features --------------------------------------------------------------------------------------------


def test_all_blocks_are_there(notes_library):
    blocks = notes_library.features.blocks
    assert list(blocks) == ["vectors", "words"]
    assert blocks["vectors"] == slice(0, 384)
    assert blocks["words"].stop == notes_library.features.width
    known, unknown = notes_library.features.compute(["Where is the refund?", "東京"])
    assert known[blocks["words"]].any()
    assert not unknown[blocks["words"]].any()
    assert unknown[blocks["vectors"]].any()


def test_another_encoder_of_the_same_name_is_refused(notes_library):
    own = notes_library.features
    near = own.probes + np.random.default_rng(0).integers(-1, 2, own.probes.shape, dtype=np.int8)
    assert replace(own, probes=near).compute(["a text"]).any()  # as another processor rounds
    for probes in (own.probes[::-1], own.probes[:, :100], np.zeros_like(own.probes)):
        with pytest.raises(ConfigError, match="another version of the sentence encoder"):
            replace(own, probes=probes).compute(["a text"])


# ---- members, pools, and the library's own texts -----------------------------------------------------------


def test_pools_are_the_surest_of_a_cell(notes_library):
    for level in notes_library.levels:
        assert sum(map(len, level.members)) == len(notes_library)
        for cell, members in enumerate(level.members):
            assert (level.cells[members] == cell).all()
            assert (np.diff(level.sure[members]) <= 0).all()
            for share in (None, 0.0, 0.25, 0.5, 1.0):
                pool = level.find_pool(cell, share)
                asked = int(np.ceil(len(members) * (level.share if share is None else share)))
                assert len(pool) == max(asked, min(LEAST_POOL, len(members)))
                assert np.array_equal(pool, members[: len(pool)])


def test_its_own_texts_are_known(notes_library):
    own = notes_library.texts[3]
    found = notes_library.contains([own, f"  {own.upper()} ", f"{own} No.", TEXTS[0]])
    assert found.tolist() == [True, True, False, False]
    notes_library.refuse([TEXTS[0]])
    with pytest.raises(InputError, match="2 of the texts given stand in it") as raised:
        notes_library.refuse([own, own, TEXTS[0]])
    assert own not in str(raised.value)


@pytest.mark.parametrize(("source", "options"), [(None, {}), ("owner/encoder", {"batch": 1})])
def test_another_encoder_encodes_one_text_at_a_time(notes_library, monkeypatch, source, options):
    """The vectors of another encoder change with the batch, if only in their last bits."""
    bundled, asked = load_sentences(), []

    def load(*given, **more):
        asked.append((given, more))
        return bundled

    monkeypatch.setattr(features_module, "load_sentences", load)
    replace(notes_library.features, encoder_source=source).compute(["a text"])
    assert asked == [((source,), options)]
