"""Generated sentences, names drawn anew, and the losses of what is not known."""

import numpy as np
import pytest
import torch
from training.data import Marked, Mention, Tagged

from textveil.models import e5
from textveil.models.entities import TAGGER_LABELS
from training import data, generated, tagger

FAMOUS = [
    Tagged(
        ["Ann", "Lee", "of", "Acme", "Corp", "in", "Rome"],
        ["B-PERSON", "I-PERSON", "O", "B-ORGANIZATION", "I-ORGANIZATION", "O", "B-LOCATION"],
        [True] * 7,
    )
]


@pytest.mark.slow
def test_sentences_hold_no_slot_and_label_what_stands_there():
    found = generated.sentences(400, FAMOUS, np.random.default_rng(0), generated.templates())
    assert len({text.text for text in found}) > 300
    for text, mentions, _ in found:
        assert "{p" not in text
        for start, end, kind, standing in mentions:
            assert text[start:end].strip() == text[start:end] != ""
            assert kind in (
                "PERSON",
                "LOCATION",
                "ORGANIZATION",
                "OTHER",
                "HANDLE",
                "EMAIL",
                "ID",
                "DATE",
            )
            assert standing in ("private", "public") or (
                kind in ("ID", "DATE") and standing == "borderline"
            )
    standings = [mention.standing for text in found for mention in text.mentions]
    assert 0.1 < standings.count("public") / len(standings) < 0.8


@pytest.mark.slow
def test_requests_are_all_about_private_or_all_about_public_names():
    found = generated.sentences(
        600, FAMOUS, np.random.default_rng(0), generated.requests(held_out=False)
    )
    standings = [
        {each.standing for each in text.mentions if each.kind not in ("ID", "DATE")}
        for text in found
    ]
    assert {*map(len, standings)} == {1}
    assert 240 < standings.count({"private"}) < 360
    for text, mentions, _ in found:
        assert "{" not in text
        assert all(text[start:end].strip() == text[start:end] != "" for start, end, *_ in mentions)


def test_a_fifth_of_the_requests_is_held_out():
    both = (generated.requests(held_out=which).values() for which in (False, True))
    seen, unseen = ({one for each in found for one in each} for found in both)
    assert not seen & unseen
    assert 3 < len(seen) / len(unseen) < 5


@pytest.mark.slow
def test_the_same_seed_gives_the_same_sentences():
    one, other = (
        generated.sentences(30, FAMOUS, np.random.default_rng(5), generated.templates())
        for _ in range(2)
    )
    assert one == other


def test_a_person_keeps_one_name_in_a_text_and_its_casing(monkeypatch):
    monkeypatch.setattr(generated, "SWAPPED", 1.0)
    text = "Anna Okonkwo wrote. OKONKWO, anna and Holmes"
    mentions = [Mention(0, 12, "PERSON", "private"), Mention(20, 27, "PERSON", "private")]
    mentions += [Mention(29, 33, "PERSON", "private"), Mention(38, 44, "PERSON", "public")]
    found, moved, _ = generated.renamed(
        Marked(text, mentions), generated.Names(np.random.default_rng(1))
    )
    whole, again, given, holmes = (found[m.start : m.end] for m in moved)
    assert holmes == "Holmes"
    assert whole.lower().endswith(again.lower())
    assert whole.lower().startswith(given.lower())
    assert again.isupper()
    assert given.islower()
    assert "Okonkwo" not in found


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("O", {"O"}),
        ("B-PERSON", {"B-PERSON private", "B-PERSON public"}),
        ("I-LOCATION public", {"I-LOCATION public"}),
        ("~public", {"O", *(each for each in TAGGER_LABELS if each.endswith(" public"))}),
        ("?", {*TAGGER_LABELS}),
    ],
)
def test_labels_that_are_possible(label, allowed):
    bits = tagger.possible(label)
    assert {each for i, each in enumerate(TAGGER_LABELS) if bits >> i & 1} == allowed


def test_the_loss_is_that_of_all_possible_labels_together():
    logits = torch.randn(1, 4, len(TAGGER_LABELS), generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[tagger.possible(each) for each in ("O", "B-PERSON", "?", "~private")]])
    total, count = tagger.loss(logits, labels)
    chances = logits.softmax(-1)[0]
    own = [TAGGER_LABELS.index("B-PERSON private"), TAGGER_LABELS.index("B-PERSON public")]
    private = [0, *(i for i, each in enumerate(TAGGER_LABELS) if each.endswith(" private"))]
    expected = -(
        chances[0, 0].log() + chances[1, own].sum().log() + chances[3, private].sum().log()
    )
    assert int(count) == 3
    assert torch.allclose(total, expected, atol=1e-5)


def test_parts_of_a_text_are_whole_sentences_and_begin_in_no_label():
    words = ["Ann", "Dr", ".", "Lee", "came", ".", "Bo", "left", "!", "Who", "?"]
    labels = ["B-PERSON", "B-PERSON", "I-PERSON", "I-PERSON", *("O",) * 7]
    text = tagger.Sentence(words, [True] * 11, [*range(11)], [*map(tagger.possible, labels)])
    rng = np.random.default_rng(0)
    found = {tuple(tagger.part_of(text, rng).words) for _ in range(200)}
    whole = [("Ann", "Dr", ".", "Lee", "came", "."), ("Bo", "left", "!"), ("Who", "?")]
    assert found == {sum(whole[i:j], ()) for i in range(3) for j in range(i + 1, 4)}


@pytest.mark.slow
def test_harder_sequences_hide_words_and_keep_their_labels():
    def unread(*, harder: bool) -> list[float]:
        source = [
            data.Tagged(
                ["Ann", "came", "home", "today", "."] * 8,
                ["B-PERSON", *("O",) * 4] * 8,
                [True] * 40,
            )
        ]
        batches = tagger.Sentences({"one": source}, {"one": 1.0}, harder=harder).batch(0)
        rows = [
            (row, labels)
            for batch in batches
            for row, labels in zip(batch.ids, batch.labels, strict=True)
        ]
        assert all((labels[row == e5.UNKNOWN] != tagger.ALL).all() for row, labels in rows)
        return [float((row == e5.UNKNOWN).float().mean()) for row, _ in rows]

    assert not any(unread(harder=False))
    shares = unread(harder=True)
    assert 0.2 < sum(map(bool, shares)) / len(shares) < 0.8
