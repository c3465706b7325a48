"""Trains the reader: `make train-reader`.

In: the available rows of SQuAD's training set. Out: the adapter `reader`.
Not here: how it is used (`textveil.models.reading`) and measured (`measure`).
"""

from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import cross_entropy

from textveil.models.bundled import find_encoder_folder
from textveil.models.torch_networks import build_backbone
from textveil.randomness import Ints
from textveil.table import minilm
from training import cli, data, lowrank
from training.loop import Run, fit

RANK, RATE, BATCH, SEED = 32, 1e-3, 8, 0
SCHEDULE = (0, 0.0), (200, 1.0), (800, 1.0), (1600, 0.0)
WINDOW = 256
"""Pieces per sequence; from a longer one, a part with the answer is drawn."""


class Example(NamedTuple):
    """A question and a text as pieces, and the first and last piece of the answer."""

    question: list[int]
    text: list[int]
    first: int
    last: int


def examples(questions: list[data.Question], tokenizer: Tokenizer) -> list[Example]:
    """The questions whose answer occurs in the text exactly once, at piece boundaries."""
    found = []
    asked = tokenizer.encode_batch([each.question for each in questions], add_special_tokens=False)
    read = tokenizer.encode_batch([each.text for each in questions], add_special_tokens=False)
    for each, question, text in zip(questions, asked, read, strict=True):
        answer = each.answers[0]
        if each.text.count(answer) != 1:
            continue
        start = each.text.index(answer)
        end = start + len(answer)
        inside = [i for i, (begin, stop) in enumerate(text.offsets) if begin < end and stop > start]
        if inside:
            found.append(Example(question.ids, text.ids, inside[0], inside[-1]))
    return found


def main() -> None:
    """Trains, or resumes, and writes the adapter."""
    where = cli.settings(__doc__.splitlines()[0])
    torch.manual_seed(SEED)
    tokenizer = minilm.read_tokenizer(find_encoder_folder())
    vocabulary = tokenizer.get_vocab()
    start, end = vocabulary["[CLS]"], vocabulary["[SEP]"]
    model = build_backbone("reader", None, **cli.SLOW_BACKWARD)
    lowrank.attach(model, RANK, train=("qa_outputs.", "bert.embeddings.token_type"), seed=SEED)
    model.to(where.device)
    known = examples(data.squad_train(where.data), tokenizer)
    by_length = sorted(range(len(known)), key=lambda i: len(known[i].text))

    def batch(step: int) -> list[Ints]:
        rng = np.random.default_rng([SEED, step])
        first = int(rng.integers(len(known) - 4 * BATCH))
        rows = []
        for i in rng.choice(by_length[first : first + 4 * BATCH], BATCH, replace=False):
            each = known[i]
            room = WINDOW - len(each.question) - 3
            low, high = max(0, each.last + 1 - room), min(each.first, max(0, len(each.text) - room))
            cut = int(rng.integers(min(low, high), high + 1))
            lead = len(each.question) + 2
            text = each.text[cut : cut + room]
            bounds = each.first - cut + lead, min(each.last - cut, room - 1) + lead
            rows.append(([start, *each.question, end, *text, end], lead, *bounds))
        size = max(len(row[0]) for row in rows)
        ids, seen, types = (np.zeros((BATCH, size), np.int64) for _ in range(3))
        for i, (pieces, lead, *_) in enumerate(rows):
            ids[i, : len(pieces)], seen[i, : len(pieces)], types[i, lead : len(pieces)] = (
                pieces,
                1,
                1,
            )
        return [ids, seen, types, np.array([row[2:] for row in rows])]

    def loss_of(step: int) -> Tensor:
        ids, seen, types, answers = (
            torch.from_numpy(each).to(where.device) for each in batch(step)
        )
        with where.products():
            found = model(input_ids=ids, attention_mask=seen, token_type_ids=types)
        hidden = (types == 0) & (
            seen == 1
        )  # the question; the last special token may win during training
        logits = (
            each.float().masked_fill(hidden | (seen == 0), -1e4)
            for each in (found.start_logits, found.end_logits)
        )
        return sum(cross_entropy(each, answers[:, i]) for i, each in enumerate(logits)) / 2  # type: ignore[return-value]

    run = Run(
        folder=where.work / "reader",
        rate=RATE,
        yield_waves=SCHEDULE,
        every=200,
        device=where.device,
    )
    fit(model, run, loss_of, dict)
    about = {"config": {}, "base": minilm.SHA256["model.safetensors"], "rank": RANK}
    lowrank.write(where.out, "reader", lowrank.changes(model), about)


if __name__ == "__main__":
    main()
