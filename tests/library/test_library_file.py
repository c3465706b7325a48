"""Libraries as files: whole or refused, and one digest for all that is in them."""

import io
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from training.notes import write_notes

from textveil.errors import ConfigError, InputError, OutputError
from textveil.library import Library

TEXTS = [note["text"] for note in write_notes(5, 6000)]


@pytest.fixture(scope="module")
def path(notes_library, tmp_path_factory):
    path = tmp_path_factory.mktemp("libraries") / "notes.library"
    notes_library.save(path)
    return path


def test_it_comes_back_as_it_was(notes_library, path):
    found = Library.read(path)
    assert found == notes_library
    assert hash(found) == hash(notes_library)
    assert (found.digest, found.facts, found.options) == (
        notes_library.digest,
        notes_library.facts,
        notes_library.options,
    )
    assert (found.texts, found.ids, found.label_names) == (
        notes_library.texts,
        notes_library.ids,
        notes_library.label_names,
    )
    for name, array in notes_library.collect_arrays().items():
        assert np.array_equal(found.collect_arrays()[name], array), name
    for one, other in zip(found.levels, notes_library.levels, strict=True):
        assert np.array_equal(found.find_cells(TEXTS, one), notes_library.find_cells(TEXTS, other))
    assert path.read_bytes().count(b"password") == 0
    assert list(path.parent.iterdir()) == [path]


def test_it_pickles(notes_library):
    found = pickle.loads(pickle.dumps(notes_library))
    assert found == notes_library
    with pytest.raises(ValueError, match="read-only"):
        found.vectors[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        found.levels[0].map.weights[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        found.features.words.axes[0] = 0
    level = found.levels[-1]
    assert np.array_equal(
        found.find_cells(TEXTS, level), notes_library.find_cells(TEXTS, notes_library.levels[-1])
    )


def test_arrays_are_read_only(notes_library):
    for array in (notes_library.labels, notes_library.levels[0].cells, notes_library.fingerprints):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_no_text_is_in_its_repr(notes_library):
    assert repr(notes_library) == ("Library('notes', 200 texts, levels labels, classes, 6, 16)")
    assert notes_library.texts[0] not in repr(notes_library.levels) + repr(notes_library.features)


@pytest.mark.parametrize(
    "change",
    [
        lambda library: {"licence": "CC0"},
        lambda library: {"source": "elsewhere"},
        lambda library: {"options": {**library.options, "seed": 1}},
        lambda library: {"facts": {}},
        lambda library: {"texts": (library.texts[0] + " ", *library.texts[1:])},
        lambda library: {"ids": ("other", *library.ids[1:])},
        lambda library: {"levels": library.levels[:-1]},
        lambda library: {"levels": (replace(library.levels[0], share=0.5), *library.levels[1:])},
        lambda library: {"hints": library.hints + np.float16(0.5)},
    ],
)
def test_each_change_changes_the_digest(notes_library, change):
    assert replace(notes_library, **change(notes_library)).digest != notes_library.digest


def test_what_is_damaged_is_refused(path, tmp_path):
    content = path.read_bytes()
    whole = Library.read(path)
    damaged = [b"", b"not a library", content[:-40], content[: len(content) // 2], content[100:]]
    damaged += [
        content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        for place in np.linspace(60, len(content) - 60, 25).astype(int)
    ]
    target = tmp_path / "damaged.library"
    messages = []
    for each in damaged:
        target.write_bytes(each)
        try:
            assert Library.read(target) == whole  # a bit of the archive that says nothing
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert all("not a library, or damaged" in line and "\n" not in line for line in messages)


def test_what_is_exchanged_is_refused(path, tmp_path):
    """Whoever changes an array and not the digest is found."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    about = json.loads(str(arrays["about"]))
    target = tmp_path / "other.library"

    def is_refused(**changes: object) -> bool:
        content = io.BytesIO()
        np.savez_compressed(content, **{**arrays, **changes})
        target.write_bytes(content.getvalue())
        try:
            Library.read(target)
        except InputError:
            return True
        return False

    assert not is_refused()
    for name, array in arrays.items():
        if name != "about":
            changed = array.copy()
            changed.flat[-1] = 1 - changed.flat[-1] if array.dtype.kind == "f" else ~array.flat[-1]
            assert is_refused(**{name: changed}), name
    assert is_refused(about=np.array(json.dumps({**about, "licence": "free"})))
    assert is_refused(about=np.array(json.dumps({**about, "textveil library": 2})))
    assert is_refused(about=np.array(json.dumps([1])))
    assert is_refused(texts=np.array([None, 1], object))


def test_files_that_cannot_be_read_or_written(notes_library, tmp_path):
    with pytest.raises(InputError, match="cannot read a library"):
        Library.read(tmp_path / "missing.library")
    with pytest.raises(InputError, match="cannot read a library"):
        Library.read(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"):
        notes_library.save(tmp_path / "file" / "new.library")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"licence": " "}, "needs a licence"),
        ({"source": "two\nlines"}, "needs a source"),
        ({"name": "x" * 501}, "needs a name"),
        ({"kind": "other"}, "is general, domain, task"),
        ({"ids": ("1",)}, "an id and a vector"),
        ({"levels": ()}, "at least one level"),
    ],
)
def test_what_is_no_library_is_refused(notes_library, changes, says):
    with pytest.raises(ConfigError, match=says):
        replace(notes_library, **changes)


def test_a_level_that_is_not_there(notes_library):
    assert notes_library.get_level("16").name == "16"
    with pytest.raises(ConfigError, match="it has labels, classes, 6, 16"):
        notes_library.get_level("30")


# ---- from strangers ------------------------------------------------------------------------------


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_unread(path, tmp_path, monkeypatch):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    content = io.BytesIO()
    np.savez_compressed(content, **arrays, more=np.zeros(1 << 27, np.uint8))
    target = tmp_path / "bomb.library"
    target.write_bytes(content.getvalue())
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="not a library, or damaged"):
        Library.read(target)


def test_texts_are_known_although_their_fingerprints_were_left_out(notes_library, tmp_path):
    target = tmp_path / "shy.library"
    replace(notes_library, fingerprints=np.zeros(0, np.uint64)).save(target)
    shy = Library.read(target)
    assert shy.contains([notes_library.texts[0].upper(), "nothing like it"]).tolist() == [
        True,
        False,
    ]
    with pytest.raises(InputError, match="stand in it"):
        shy.refuse([notes_library.texts[0]])


@pytest.mark.parametrize("share", [0, -1, 2, float("nan")])
def test_a_level_without_a_share_of_texts_is_refused(notes_library, share):
    levels = (replace(notes_library.levels[0], share=share), *notes_library.levels[1:])
    with pytest.raises(ConfigError, match="share above 0"):
        replace(notes_library, levels=levels)


def test_labels_that_have_no_name_are_refused(notes_library):
    for labels in (notes_library.labels[:-1], notes_library.labels + 1):
        with pytest.raises(ConfigError, match="a label for each text"):
            replace(notes_library, labels=labels)
