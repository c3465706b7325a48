"""Reconstruction by a language model that reads a release.

In: released texts, and the endpoint you configure. Out: the share of protected words recovered;
Rouge-L.
Not here: the client of the endpoint (`textveil.models`), and small local models (`masked`).

Only the released text and public facts about it are sent.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from textveil.config import make_options
from textveil.evaluate.attack.attack_contract import Outcome, ProgressCallback, ignore_progress
from textveil.evaluate.attack.attack_input import Case, View
from textveil.evaluate.attack.bayes import NOTHING_PROTECTED
from textveil.models import Address, Endpoint, Key
from textveil.randomness import Ids, Randomness
from textveil.text import Item, Kind, tokenize
from textveil_bench.attack.reconstruction import NEAR_COSINE, compute_cosines, find_protected_texts
from textveil_bench.overlap import match_words, rouge_l

NO_ENDPOINT = "it needs an endpoint: set attack.llm.url and attack.llm.model"

INSTRUCTIONS = """\
A program for private text has changed the text that you are given. It took each word by itself, and replaced it by \
one that it drew at random with the mechanism "{mechanism}"; a replacement may be near in meaning to the word that \
stood there, may be that very word, or may have nothing to do with it. {public}{placeholders}Order and number of the \
words are those of the original.

Work out the original text: what would a person have written, so that every word fits the others, and fits what it \
was replaced by? Answer with the whole of the most likely original and with nothing else: no remarks, no quotation \
marks. It has {words} words; a punctuation mark counts as one."""

PUBLIC_NOTE = "Frequent function words and punctuation marks were left unchanged. "
PLACEHOLDER_NOTE = 'Where "<WORD>" or the like stands, nothing is known of the word. '


@make_options()
class Reconstruction:
    """Asks a language model behind an OpenAI-compatible endpoint to restore each original.

    The answer is split into words. If it has as many words as the release, they are aligned by
    position. Otherwise the public words are matched in the answer (longest common subsequence).
    Between two matches, words are aligned by position if their numbers agree; else the protected
    words are aligned with the answer's words from the left. A protected word without a partner
    counts as not recovered.

    The result is a lower bound of what language models can recover. A model may have memorized
    published texts, and then recovers more of them than of private ones.

    Args:
        url: base URL of the API, such as http://127.0.0.1:8080/v1.
        model: the model's name at the endpoint.
        key: the API key; else the environment variable TEXTVEIL_LLM_KEY.
        temperature: from 0 (most likely answer) to 2.
        timeout: seconds without a response before the request fails.
        limit: maximum number of texts sent: the first ones with a protected word.
    """

    name: ClassVar[str] = "llm"
    on_request: ClassVar[Literal[True]] = True
    url: Address | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    key: Key = Field(default=None, repr=False)
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    limit: Annotated[int, Field(ge=1, strict=True)] = 100

    def refusal(self, view: View) -> str:
        """Explains why the attack cannot run: no endpoint, or no protected word."""
        if self.url is None or self.model is None:
            return NO_ENDPOINT
        return "" if len(find_protected_texts(view)) else NOTHING_PROTECTED

    def run(
        self, case: Case, *, rng: Randomness, report: ProgressCallback = ignore_progress
    ) -> Iterator[Outcome]:
        """Yields the shares of words recovered exactly and nearly, and Rouge-L.

        Raises:
            EndpointError: the endpoint cannot be reached, refused, or answered without text.
        """
        view, truth = case.view, case.truth
        texts = find_protected_texts(view)[: self.limit]
        answers = [tokenize([answer]).words for answer in self.ask(view, texts, report)]
        guesses: list[str | None] = [None] * len(view.items)
        for b, answer in zip(texts.tolist(), answers, strict=True):
            guesses[view.documents[b] : view.documents[b + 1]] = align(
                view.released[b].items, answer
            )
        first = np.diff(view.item, prepend=-1) > 0  # of the pieces of a word
        where = np.flatnonzero(first & np.isin(view.text, texts))
        items = view.item[where].tolist()
        note = (
            f"{self.model} wrote {len(texts)} of {len(find_protected_texts(view))} texts; a lower "
            "bound"
        )
        hits = [(guesses[i] or "").lower() == truth.words[i].lower() for i in items]
        if len(where):
            yield Outcome(
                source=self.name,
                metric="top-1",
                where=where,
                values=np.array(hits, np.float64),
                note=note,
            )
        if view.name_items is not None and len(
            name_positions := np.flatnonzero(np.isin(view.text_of_name, texts))
        ):
            name_hits = [
                (guesses[i] or "").lower() == truth.words[i].lower()
                for i in view.name_items.items[name_positions].tolist()
            ]
            values = np.array(name_hits, np.float64)
            yield Outcome(
                source=self.name,
                metric="top-1",
                unit="name",
                where=name_positions,
                values=values,
                note=note,
            )
        if view.words.unit == "word" and len(where):
            has_guess = np.array([guesses[i] is not None for i in items], bool)
            rows, _ = view.origin.lookup([guesses[i] or "" for i in items])
            near = compute_cosines(view.origin, rows, truth.rows[where]) >= NEAR_COSINE
            yield Outcome(
                source=self.name,
                metric=f"cosine >= {NEAR_COSINE:g}",
                where=where,
                values=(has_guess & near).astype(np.float64),
                note=f"{note}; cosine of the rows of guess and private word",
                headline=False,
            )
        originals = [truth.words[view.documents[b] : view.documents[b + 1]] for b in texts.tolist()]
        overlaps = [
            rouge_l(answer, original) for answer, original in zip(answers, originals, strict=True)
        ]
        yield Outcome(
            source=self.name,
            metric="Rouge-L",
            unit="text",
            where=texts,
            values=np.array(overlaps),
            note=f"{note}; words that pass count as found",
            headline=False,
        )

    def ask(self, view: View, texts: Ids, report: ProgressCallback = ignore_progress) -> list[str]:
        """Asks the model for the originals of these texts."""
        endpoint = Endpoint(
            url=self.url or "",
            model=self.model or "",
            key=self.key,
            temperature=self.temperature,
            timeout=self.timeout,
        )
        mechanism = view.mechanism.claim(view.table).mechanism
        public = PUBLIC_NOTE if view.words.stopwords == "pass" else ""
        prompts = []
        for released in (view.released[b] for b in texts.tolist()):
            placeholders = PLACEHOLDER_NOTE if released.mask.placeholders else ""
            system = INSTRUCTIONS.format(
                mechanism=mechanism,
                public=public,
                placeholders=placeholders,
                words=len(released.items),
            )
            prompts.append((system, released.text))
        answers = endpoint.ask(prompts, report=report)
        return [
            answer.encode(errors="replace").decode() for answer in answers
        ]  # JSON may hold half a character


def align(released: Sequence[Item], answer: Sequence[str]) -> list[str | None]:
    """Aligns the answer's words with the released items; None without a partner.

    See `Reconstruction` for the rules.
    """
    if len(answer) == len(released):
        return list(answer)
    passed = [item.text.casefold() if item.kind is Kind.VERBATIM else None for item in released]
    anchors = match_words(passed, [word.casefold() for word in answer])
    guesses: list[str | None] = [None] * len(released)
    for (i, j), (end, stop) in pairwise([(-1, -1), *anchors, (len(released), len(answer))]):
        if i >= 0:
            guesses[i] = answer[j]
        gap, words = list(range(i + 1, end)), answer[j + 1 : stop]
        if len(gap) != len(words):
            gap = [position for position in gap if passed[position] is None]
        for position, word in zip(gap, words, strict=False):
            guesses[position] = word
    return guesses
