"""Generation: language models continue released beginnings of texts.

In: released texts, and endpoints. Out: similarity of the continuation to the original beginning and
to the expected text.
Not here: how answers are revised (`textveil.models`), and the similarity of releases themselves
(`meaning`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from textveil.config import make_options
from textveil.errors import ConfigError
from textveil.evaluate.attack import ProgressCallback, ignore_progress
from textveil.models import EXTRACTION_TEMPERATURE, NO_KEY, Address, Endpoint, extract
from textveil_bench.examples import DataSet
from textveil_bench.tasks import judge_models, sentence_vectors, small_model
from textveil_bench.tasks.endpoint_judge import NO_ENDPOINT
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample, ReleasedField

CONTINUATION_PROMPT = """\
The user sends the beginning of a text. Write how it goes on, in about {length} words and in the same style. Your \
answer is the continuation alone, without the beginning."""

TOKENS_PER_WORD = 4 / 3
"""Tokens of the small model per word."""

SMALL_TEMPERATURE = 0.5
"""The small model's temperature, as in InferDPT; at 0 it repeats itself."""

Temperature = Annotated[float, Field(ge=0, le=2)]


class Prompt(NamedTuple):
    """A text split where a language model continues it. Secret.

    Args:
        released: the release of its beginning.
        original: the original beginning.
        continuation: the original continuation.
    """

    released: str
    original: str
    continuation: str


@make_options()
class Generation:
    """Judges texts by a language model's continuation of their released beginnings.

    As in InferDPT and Cape, a remote model continues the released beginning; a local one then
    revises the continuation to fit (`textveil.models`). Both scores are cosines of sentence
    vectors:

    - `coherence`: between the result and the original beginning.
    - `alignment`: between the result and the expected text: the text's own continuation, or the
      remote model's continuation of the original.

    With the default options, only releases are sent. Two options change that: `expected=model`
    sends the originals to the remote model, once per call, and `shown=original` sends them to the
    local one, as in the papers; the local model must then be named. The papers' sentence vectors
    are SimCSE's.

    With `small`, the package's small base model (`tasks.small_model`) continues the beginning in
    this process, and no local model revises: the small one does not follow instructions.

    Source: Tong et al., "InferDPT" (2023); Cape, section 5.1.2 and equation 12.

    Args:
        prefix: words in the beginning of a text; half of the text if it is shorter than twice that.
        length: approximate words of the continuation; the text's own is cut to the same length.
        expected: the reference for alignment, "text" or "model".
        temperature: temperature of the remote model; by default the endpoint's.
        extraction: temperature of the local model; None leaves its step out.
        shown: the beginning that the local model sees, "released" or "original".
        local_url: URL of the local model, used without a key; by default that of the remote one.
        local_model: name of the local model at that URL.
        small: whether the small model replaces the remote one; there is then no local one.
        encoder: a folder or hub id of a sentence-transformers model; the bundled one by default.
        endpoint: endpoint of the remote model.
        report: called with progress.
    """

    prefix: Annotated[int, Field(ge=1, strict=True)] = 50
    length: Annotated[int, Field(ge=1, strict=True)] = 100
    expected: Literal["text", "model"] = "text"
    temperature: Temperature | None = None
    extraction: Temperature | None = EXTRACTION_TEMPERATURE
    shown: Literal["released", "original"] = "released"
    local_url: Address | None = None
    local_model: Annotated[str, Field(min_length=1)] | None = None
    small: bool = False
    encoder: str | None = None
    endpoint: Endpoint | None = Field(default=None, repr=False)
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    def __post_init__(self) -> None:
        if self.shown == "original" and (self.local_url is None or self.local_model is None):
            raise ConfigError("shown=original needs a local model: set local_url and local_model")

    @property
    def name(self) -> str:
        """The judge's name in rows."""
        model = self.endpoint.model if self.endpoint else "no endpoint"
        return f"generation ({small_model.MODEL_NAME if self.small else model})"

    def explain_refusal(self, data: DataSet) -> str:
        """Returns why there is no endpoint or text to continue, or ""."""
        if self.endpoint is None and not self.small:
            return NO_ENDPOINT
        return (
            ""
            if data.kind == "text"
            else f"it continues texts, and {data.name} is of the kind {data.kind}"
        )

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Yields coherence and alignment.

        Raises:
            EndpointError: an endpoint cannot be reached, refused, or answered without text.
        """
        prompts = [split_prompt(trial.parts[0], self.prefix, self.length) for trial in trials]
        continuations = self._write([prompt.released for prompt in prompts])
        outcome = self._revise_texts(prompts, continuations)
        wanted = [prompt.continuation for prompt in prompts]
        if self.expected == "model":
            wanted = self._write([prompt.original for prompt in prompts])
        outcome_vectors = sentence_vectors.encode(outcome, self.encoder)
        expectation = (
            "the text's own continuation"
            if self.expected == "text"
            else "what the model writes for the original"
        )
        references = {
            "coherence": ([item.original for item in prompts], "the beginning"),
            "alignment": (wanted, expectation),
        }
        for metric, (texts, description) in references.items():
            yield Score(
                metric=metric,
                values=sentence_vectors.compute_cosines(
                    outcome_vectors, sentence_vectors.encode(texts, self.encoder)
                ),
                share=False,
                headline=metric == "coherence",
                note=f"cosine with {description}, sentence vectors of {judge_models.get_model_name(self.encoder)}",
            )

    def _write(self, beginnings: Sequence[str]) -> list[str]:
        """Continues beginnings with the remote model, or the small one."""
        if self.small:
            temperature = SMALL_TEMPERATURE if self.temperature is None else self.temperature
            tokens = round(self.length * TOKENS_PER_WORD)
            return [
                small_model.get_model().continue_text(text, tokens, temperature=temperature)
                for text in beginnings
            ]
        if self.endpoint is None:
            raise ConfigError(NO_ENDPOINT)
        endpoint = (
            self.endpoint
            if self.temperature is None
            else replace(self.endpoint, temperature=self.temperature)
        )
        system = CONTINUATION_PROMPT.format(length=self.length)
        replies = endpoint.ask([(system, text) for text in beginnings], report=self.report)
        return [
            text.encode(errors="replace").decode() for text in replies
        ]  # JSON may hold lone surrogates

    def _revise_texts(self, prompts: Sequence[Prompt], continuations: Sequence[str]) -> list[str]:
        """Revises the continuations with the local model."""
        if self.small or self.extraction is None or self.endpoint is None:
            return list(continuations)
        local = replace(self.endpoint, model=self.local_model or self.endpoint.model)
        if self.local_url is not None:
            local = replace(
                local, url=self.local_url, key=NO_KEY
            )  # the key is for the remote one only
        beginnings = [
            prompt.original if self.shown == "original" else prompt.released for prompt in prompts
        ]
        return extract(
            beginnings, continuations, local, temperature=self.extraction, report=self.report
        )


def split_prompt(part: ReleasedField, prefix: int, length: int) -> Prompt:
    """Splits a text after its first words.

    Args:
        part: its release.
        prefix: number of words; half of the text if it has less than twice as many. An item that
            replaces words on both sides of the split belongs to the beginning.
        length: largest number of words of the rest.
    """
    words = len(part.starts)
    count = max(1, min(prefix, words // 2))
    items = [
        (gap, item) for gap, item in zip(part.gaps, part.items, strict=False) if item.start < count
    ]
    cut = min(words, max([count, *(item.end for _, item in items)]))
    stop = min(words, cut + length)
    return Prompt(
        released="".join(gap + item.text for gap, item in items),
        original=part.original[: part.ends[cut - 1]] if cut else "",
        continuation=part.original[part.starts[cut] : part.ends[stop - 1]] if cut < words else "",
    )
