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
from textveil.models import EXTRACTION_TEMPERATURE, NO_KEY, Address, Endpoint, Prompts, extract
from textveil_bench.examples import DataSet
from textveil_bench.prompts import choose_prompt
from textveil_bench.tasks import judge_models, sentence_vectors, small_model
from textveil_bench.tasks.endpoint_judge import NO_ENDPOINT
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample, ReleasedField

TOKENS_PER_WORD = 4 / 3
"""Tokens of the small model per word."""

SMALL_TEMPERATURE = 0.5
"""The small model's temperature, as in InferDPT; at 0 it repeats itself."""

Temperature = Annotated[float, Field(ge=0, le=2)]


class SplitText(NamedTuple):
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
    sends the originals to the remote model, and `shown=original` sends them to the local one, as in
    the papers; the local model must then be named. If the run names a model on this machine
    (`local`), that one revises, and sees the originals unless `shown=released`. The papers'
    sentence vectors are SimCSE's.

    With `small`, the package's small base model (`tasks.small_model`) continues the beginning in
    this process, and no local model revises: the small one does not follow instructions.

    Source: Tong et al., "InferDPT" (2023); Cape, section 5.1.2 and equation 12.

    Args:
        prefix: words in the beginning of a text; half of the text if it is shorter than twice that.
        length: approximate words of the continuation; the text's own is cut to the same length.
        expected: the reference for alignment, "text" or "model".
        temperature: temperature of the remote model; by default the endpoint's.
        extraction: temperature of the local model; None leaves its step out.
        shown: the beginning that the local model sees, "released" or "original"; by default the
            original if the run names a model on this machine, else the released one.
        local_url: URL of the local model, used without a key; by default that of the remote one.
        local_model: name of the local model at that URL.
        small: whether the small model replaces the remote one; there is then no local one.
        encoder: a folder or hub id of a sentence-transformers model; the bundled one by default.
        endpoint: endpoint of the remote model.
        local: endpoint of the local model, if the run names one.
        prompts: wordings; None for ours.
        report: called with progress.
    """

    prefix: Annotated[int, Field(ge=1, strict=True)] = 50
    length: Annotated[int, Field(ge=1, strict=True)] = 100
    expected: Literal["text", "model"] = "text"
    temperature: Temperature | None = None
    extraction: Temperature | None = EXTRACTION_TEMPERATURE
    shown: Literal["released", "original"] | None = None
    local_url: Address | None = None
    local_model: Annotated[str, Field(min_length=1)] | None = None
    small: bool = False
    encoder: str | None = None
    endpoint: Endpoint | None = Field(default=None, repr=False)
    local: Endpoint | None = Field(default=None, repr=False)
    prompts: Prompts | None = Field(default=None, repr=False)
    report: ProgressCallback = Field(default=ignore_progress, repr=False)

    def __post_init__(self) -> None:
        has_own = self.local_url is not None and self.local_model is not None
        if self.shown == "original" and self.local is None and not has_own:
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
        prompts = self._split_prompts(trials)
        outcome, wanted = self.ask_all(data, trials)
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
                note=f"cosine with {description}, sentence vectors of "
                f"{judge_models.get_model_name(self.encoder)}{self._describe_revision()}",
            )

    def ask_all(
        self, data: DataSet, trials: Sequence[ReleasedExample]
    ) -> tuple[list[str], list[str]]:
        """Asks for the continuations; returns the revised ones, and the expected ones.

        Raises:
            EndpointError: an endpoint cannot be reached, refused, or answered without text.
        """
        prompts = self._split_prompts(trials)
        continuations = self._write([prompt.released for prompt in prompts])
        outcome = self._revise_texts(prompts, continuations)
        wanted = [prompt.continuation for prompt in prompts]
        if self.expected == "model":
            wanted = self._write([prompt.original for prompt in prompts])
        return outcome, wanted

    def _split_prompts(self, trials: Sequence[ReleasedExample]) -> list[SplitText]:
        return [split_prompt(trial.parts[0], self.prefix, self.length) for trial in trials]

    @property
    def _shows_original(self) -> bool:
        """True if the local model sees original beginnings; never the remote one."""
        return self.shown == "original" or (self.shown is None and self.local is not None)

    def _describe_revision(self) -> str:
        if self.small or self.extraction is None:
            return "; not revised"
        kind = "original" if self._shows_original else "released"
        return f"; the model that revises sees the {kind} beginning"

    def _write(self, beginnings: Sequence[str]) -> list[str]:
        """Continues beginnings with the remote model, or the small one."""
        if self.small:
            warmth = SMALL_TEMPERATURE if self.temperature is None else self.temperature
            tokens = round(self.length * TOKENS_PER_WORD)
            return [
                small_model.get_model().continue_text(text, tokens, temperature=warmth)
                for text in beginnings
            ]
        if self.endpoint is None:
            raise ConfigError(NO_ENDPOINT)
        prompt = choose_prompt(self.prompts, "continuation")
        temperature = self.temperature if prompt.temperature is None else prompt.temperature
        endpoint = (
            self.endpoint
            if temperature is None
            else replace(self.endpoint, temperature=temperature)
        )
        replies = endpoint.ask(
            [prompt.fill(text=text, length=self.length) for text in beginnings],
            report=self.report,
            max_tokens=prompt.max_tokens,
        )
        return [
            text.encode(errors="replace").decode() for text in replies
        ]  # JSON may hold lone surrogates

    def _revise_texts(
        self, prompts: Sequence[SplitText], continuations: Sequence[str]
    ) -> list[str]:
        """Revises the continuations with the local model."""
        if self.small or self.extraction is None or self.endpoint is None:
            return list(continuations)
        local = self.local  # nothing else may stand in for it: it may see originals
        if local is None:
            local = replace(self.endpoint, model=self.local_model or self.endpoint.model)
            if self.local_url is not None:  # the key is for the remote one only
                local = replace(local, url=self.local_url, key=NO_KEY, identity="")
        beginnings = [
            prompt.original if self._shows_original else prompt.released for prompt in prompts
        ]
        return extract(
            beginnings,
            continuations,
            local,
            temperature=self.extraction,
            prompt=choose_prompt(self.prompts, "extraction"),
            report=self.report,
        )


def split_prompt(part: ReleasedField, prefix: int, length: int) -> SplitText:
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
    return SplitText(
        released="".join(gap + item.text for gap, item in items),
        original=part.original[: part.ends[cut - 1]] if cut else "",
        continuation=part.original[part.starts[cut] : part.ends[stop - 1]] if cut < words else "",
    )
