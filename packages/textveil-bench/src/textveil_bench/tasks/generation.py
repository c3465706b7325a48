"""Generation: a language model continues the released beginning of a text, and a local one reworks the answer.

In: released texts, and endpoints. Out: similarity of the result to the original beginning and to
the expected text.
Not here: how answers are reworked (`textveil.models`), and texts judged as they are (`meaning`).
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
from textveil_bench.tasks import models, small_model, vectors
from textveil_bench.tasks.endpoint_judge import NO_ENDPOINT
from textveil_bench.tasks.task_contract import Score
from textveil_bench.trials import ReleasedExample, ReleasedField

CONTINUATION_PROMPT = """\
The user sends the beginning of a text. Write how it goes on, in about {length} words and in the same style. Your \
answer is the continuation alone, without the beginning."""

TOKENS_PER_WORD = 4 / 3
"""Of the small model, for each word."""

SMALL_TEMPERATURE = 0.5
"""Of the small model, as InferDPT has it: at 0 it says one thing again and again."""

Temperature = Annotated[float, Field(ge=0, le=2)]


class Prompt(NamedTuple):
    """A text split where a language model takes over. Secret.

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
    """Judges texts by what a language model makes of their released beginnings, as InferDPT and Cape do.

    A remote model continues the released beginning; a local one then reworks the answer into one
    that suits
    (`textveil.models`). Both scores are cosines of sentence vectors:

    - `coherence`: between the result and the original beginning.
    - `alignment`: between the result and what was expected: the text's own continuation, or what
    the remote model
      writes for the original.

    With the default options, only releases are sent. Two options change that: `expected=model`
    sends the originals to
    the remote model, once per call, and `shown=original` sends them to the local one, as in the
    papers; the local model
    must then be named. The papers' sentence vectors are SimCSE's.

    With `small`, the package's small base model (`tasks.small_model`) continues the beginning in
    this process, and nothing is
    reworked: it was not taught to follow instructions.

    Source: Tong et al., "InferDPT" (2023); Cape, section 5.1.2 and equation 12.

    Args:
        prefix: words in the beginning of a text; half of them for shorter texts.
        length: approximate words of the continuation; as many of the text's own are compared.
        expected: the reference for alignment, "text" or "model".
        temperature: of the remote model; by default the endpoint's.
        extraction: temperature of the local model; None leaves its step out.
        shown: the beginning that the local model sees, "released" or "original".
        local_url: URL of the local model, used without a key; by default that of the remote one.
        local_model: its name there.
        small: whether the small model takes the place of the remote one; there is then no local
            one.
        encoder: a folder or hub id of a sentence-transformers model; the bundled one by default.
        endpoint: of the remote model.
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
        """What rows call it."""
        model = self.endpoint.model if self.endpoint else "no endpoint"
        return f"generation ({small_model.MODEL_NAME if self.small else model})"

    def explain_refusal(self, data: DataSet) -> str:
        """The reason if there is no endpoint, or no text to continue."""
        if self.endpoint is None and not self.small:
            return NO_ENDPOINT
        return (
            ""
            if data.kind == "text"
            else f"it goes on with texts, and {data.name} is of the kind {data.kind}"
        )

    def score(self, data: DataSet, trials: Sequence[ReleasedExample]) -> Iterator[Score]:
        """Coherence and alignment.

        Raises:
            EndpointError: an endpoint cannot be reached, refused, or answered without text.
        """
        prompts = [split_prompt(trial.parts[0], self.prefix, self.length) for trial in trials]
        continuations = self._write([prompt.released for prompt in prompts])
        outcome = self._revise_texts(prompts, continuations)
        wanted = [prompt.continuation for prompt in prompts]
        if self.expected == "model":
            wanted = self._write([prompt.original for prompt in prompts])
        outcome_vectors = vectors.encode(outcome, self.encoder)
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
                values=vectors.compute_cosines(
                    outcome_vectors, vectors.encode(texts, self.encoder)
                ),
                share=False,
                headline=metric == "coherence",
                note=f"cosine with {description}, sentence vectors of {models.get_model_name(self.encoder)}",
            )

    def _write(self, beginnings: Sequence[str]) -> list[str]:
        """The remote model's continuations, or the small one's."""
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
        """The local model's revisions of them."""
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
    """A text split after its first words.

    Args:
        part: its release.
        prefix: number of words; half of the text if it has less than twice as many. An item that
            stands for words on
            both sides of the split belongs to the beginning.
        length: most words of the rest.
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
