"""A component of spaCy: the release stands beside the document, or nothing does."""

import json
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("spacy", reason="the extra `spacy` is not installed")
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.util import ignore_error

import textveil.integrations.spacy as component
from textveil.errors import DetectorError, TextveilError, UnknownName

CANARY = "zyxqorvian@example.org"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def nlp():
    made = spacy.blank("en")
    made.add_pipe("textveil")
    return made


class Fails:
    def privatize_many(self, texts):
        raise DetectorError("a detector failed")


def test_the_release_is_beside_the_document(nlp):
    doc = nlp(f"Ask Maria Silva ({CANARY})")
    assert doc.text == f"Ask Maria Silva ({CANARY})"
    assert doc._.textveil["text"] == "Ask <PERSON_1> (<EMAIL_1>)"
    assert doc._.textveil["hidden"] == {"PERSON": 1, "EMAIL": 1}
    assert doc._.textveil["statement"]["kind"] == "none"
    assert CANARY not in json.dumps(doc._.textveil)


def test_many_documents_come_in_their_order(nlp):
    docs = nlp.pipe([f"{i} {CANARY}" for i in range(20)], batch_size=7)
    assert [doc._.textveil["text"] for doc in docs] == [f"{i} <EMAIL_1>" for i in range(20)]


@pytest.mark.parametrize("handled", [True, False])
def test_an_error_is_raised_even_where_spacy_is_told_to_ignore_it(nlp, handled, monkeypatch):
    if handled:
        nlp.set_error_handler(ignore_error)
    monkeypatch.setattr(nlp.get_pipe("textveil"), "_privatizer", Fails())
    with pytest.raises(TextveilError, match="a detector failed") as failed:
        list(nlp.pipe([CANARY, CANARY]))
    assert CANARY not in str(failed.value)
    doc = nlp.make_doc(CANARY)
    doc._.textveil = {"text": "of another pipeline"}
    with suppress(TextveilError):  # of one document, spaCy's own handler gives the document back
        nlp(doc)
    assert doc._.textveil is None


def test_a_document_that_was_never_released_has_nothing():
    assert spacy.blank("en")(CANARY)._.textveil is None


def test_releases_are_written_with_documents(nlp):
    doc = nlp(f"Ask {CANARY}")
    read = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert read._.textveil == doc._.textveil
    (other,) = DocBin(docs=[doc], store_user_data=True).get_docs(nlp.vocab)
    assert other._.textveil["text"] == "Ask <EMAIL_1>"


@pytest.mark.slow
def test_a_pipeline_is_written_and_read(nlp, tmp_path):
    nlp(CANARY)
    nlp.to_disk(tmp_path, exclude=["vocab"])  # which holds the words that spaCy has seen
    assert not [
        path
        for path in tmp_path.rglob("*")
        if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    assert spacy.load(tmp_path)(f"Ask {CANARY}")._.textveil["text"] == "Ask <EMAIL_1>"


def test_other_profiles_and_wrong_options():
    made = spacy.blank("en")
    made.add_pipe("textveil", config={"profile": "document", "options": {"epsilon": 60}})
    assert made("Ingrid hid it")._.textveil["statement"]["epsilon"] != "infinite"
    with pytest.raises(UnknownName):
        spacy.blank("en").add_pipe("textveil", config={"profile": "nothing"})


def test_spacy_finds_it_by_itself():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        "spacy_factories"
    ]
    assert declared == {"textveil": "textveil.integrations.spacy:make"}
    assert Language.get_factory_meta("textveil").assigns == ["doc._.textveil"]
    assert component.make is not None


@pytest.mark.slow
def test_more_than_one_process(nlp):
    docs = nlp.pipe([f"{i} {CANARY}" for i in range(4)], n_process=2, batch_size=2)
    assert [doc._.textveil["text"] for doc in docs] == [f"{i} <EMAIL_1>" for i in range(4)]
