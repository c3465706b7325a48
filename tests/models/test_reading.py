"""Reading: spans against the network run by hand, windows, places in the text, and bad input."""

import numpy as np
import pytest
import torch
import transformers

from textveil.errors import ConfigError, InputError
from textveil.models import load_reader

TEXT = "Maria met John at Acme corp in Paris today, near the old town."


@pytest.mark.parametrize("family", ["bert-reader", "roberta-reader"])
def test_the_answer_is_the_best_span_of_the_network_run_by_hand(family, folders):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[family])
    network = transformers.AutoModelForQuestionAnswering.from_pretrained(folders[family]).eval()
    question = "where did maria meet"
    encoded = tokenizer(
        question, TEXT, return_tensors="pt", return_offsets_mapping=True, truncation=False
    )
    places = encoded.pop("offset_mapping")[0].tolist()
    second = [i for i, sequence in enumerate(encoded.sequence_ids(0)) if sequence == 1]
    if family == "bert-reader":
        encoded["token_type_ids"] = torch.tensor(
            [[int(sequence == 1) for sequence in encoded.sequence_ids(0)]]
        )
        encoded["token_type_ids"][0, -1] = 1
    reader = load_reader(folders[family], window=128, longest=5)
    assert encoded["input_ids"].shape[1] <= reader.window
    with torch.inference_mode():
        output = network(**encoded)
    start, end = output.start_logits[0], output.end_logits[0]
    best = max((float(start[i] + end[j]), i, j) for i in second for j in second if i <= j < i + 5)
    (answer,) = reader.answer([question], [TEXT])
    assert (answer.start, answer.end) == (places[best[1]][0], places[best[2]][1])
    assert answer.score == pytest.approx(best[0], abs=1e-3)


def test_answers_stand_in_their_texts_however_long_and_whatever_they_are(folders):
    texts = [TEXT * 30, "", "x", "\N{GRINNING FACE} \x00", TEXT, "a" * 5000]
    reader = load_reader(folders["bert-reader"], window=48)
    answers = reader.answer(["what maria"] * len(texts), texts)
    assert [
        text[answer.start : answer.end] for text, answer in zip(texts, answers, strict=True)
    ] == [answer.text for answer in answers]
    assert answers[1] == ("", 0, 0, 0.0)
    assert all(np.isfinite(answer.score) for answer in answers)


def test_an_answer_begins_and_ends_with_a_letter_where_pieces_hold_the_space_before_them(folders):
    questions = ["who", "doctor", "paris", "john", "town", "a"]
    text = "maria met john in old town near lisbon"
    for answer in load_reader(folders["xlmr-reader"]).answer(questions, [text] * len(questions)):
        assert answer.text == answer.text.strip() == text[answer.start : answer.end] != ""


def test_a_long_text_is_read_to_its_end(folders):
    """Some text of windows has its best span in the last one; an answer from the first only would miss it."""
    reader = load_reader(folders["bert-reader"], window=32)
    starts = []
    for i in range(12):
        text = " ".join(f"{['maria', 'john', 'paris', 'town'][(i * j) % 4]}" for j in range(120))
        starts.append(reader.answer(["who"], [text])[0].start / len(text))
    assert max(starts) > 0.5


def test_no_questions_have_no_answers(folders):
    assert load_reader(folders["bert-reader"]).answer([], []) == []


@pytest.mark.parametrize(
    ("questions", "texts"), [(["a"], []), ("a", "b"), ([None], ["canary"]), (["a"], ["\ud800"])]
)
def test_lists_that_do_not_fit_or_are_no_texts_are_refused_without_showing_them(
    questions, texts, folders
):
    with pytest.raises(InputError) as caught:
        load_reader(folders["bert-reader"]).answer(questions, texts)
    assert "canary" not in str(caught.value)


def test_a_question_that_leaves_no_room_for_the_text_is_refused_and_not_cut(folders):
    reader = load_reader(folders["bert-reader"], window=32)
    with pytest.raises(InputError, match="half the window, 16 pieces; number 1 has 17") as caught:
        reader.answer(["maria " * 16, "canary " + "maria " * 11], [TEXT, TEXT])
    assert "canary" not in str(caught.value)


def test_letters_that_look_like_a_mark_of_the_model_are_letters(folders):
    text = "maria [SEP] john [PAD] paris"
    reader = load_reader(folders["bert-reader"])
    marks = {reader.model.tokenizer.token_to_id(mark) for mark in ("[SEP]", "[PAD]")}
    assert not marks & set(reader.model.tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("options", [{"window": 31}, {"longest": 0}, {"batch": 0}])
def test_options_out_of_range_are_refused(options, folders):
    with pytest.raises(ConfigError, match="must be at least"):
        load_reader(folders["bert-reader"], **options)
