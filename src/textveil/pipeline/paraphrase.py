"""Paraphraser: a local language model writes a text anew, from clipped logits.

In: texts, a model, epsilon or a temperature. Out: one `Paraphrase` per text, with its statement.
Not here: how a token is drawn (`mechanism.token_draw`), the model (`models.text_generation`), and
releases word by word (`privatizer`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from textveil.errors import ConfigError
from textveil.guarantee import format_number
from textveil.mechanism import TokenDraw, find_temperature
from textveil.models import TextGenerator, load_generator
from textveil.randomness import Draws, Floats, Randomness, SeededRandomness, SystemRandomness
from textveil.text import check_texts

PROMPT = "Text: {text}\n\nThe same text in other words:"


@dataclass(frozen=True, kw_only=True)
class Paraphrase:
    """A text that was written anew, with its statement.

    Attributes:
        text: what is released.
        epsilon: local DP of the whole text.
        token_epsilon: of one token.
        tokens: most tokens.
        temperature: of the draws.
        model: the name of the model.
        repeatable: whether a seed was given.
    """

    text: str
    epsilon: float
    token_epsilon: float
    tokens: int
    temperature: float
    model: str
    repeatable: bool

    def summary(self) -> str:
        """Returns the statement in one line."""
        return (
            f"local DP {format_number(self.epsilon)} for the whole text: at most {self.tokens:,} "
            f"tokens at epsilon {format_number(self.token_epsilon)} each"
            + (
                "; repeatable, so no protection against anyone who knows the seed."
                * self.repeatable
            )
        ).rstrip(".") + "."

    def explain(self) -> str:
        """Returns the whole statement."""
        return "\n".join(
            [
                self.summary(),
                "For every two texts x, x' and every text y: |ln Pr[y | x] - ln Pr[y | x']| <= "
                f"{format_number(self.epsilon)}.",
                f"Every token, the end of the text too, was drawn from the clipped logits of "
                f"{self.model}, at temperature {self.temperature:.6g}, by whole numbers.",
                "That is for one release of a text; repeated releases add up.",
                "Assumptions: the model was not trained on private texts; it runs where the text "
                "may be; nobody sees its logits or the time that it takes.",
                "A seed was given: no protection against anyone who knows it."
                if self.repeatable
                else "Draws come from AES, keyed by the operating system.",
            ]
        )

    def to_json(self) -> dict[str, object]:
        """Returns text and statement as plain data."""
        return {
            "text": self.text,
            "guarantee": {
                "kind": "ldp",
                "unit": "text",
                "epsilon": self.epsilon,
                "token_epsilon": self.token_epsilon,
                "tokens": self.tokens,
                "temperature": self.temperature,
                "model": self.model,
                "repeatable": self.repeatable,
            },
        }


@dataclass(frozen=True, kw_only=True)
class Paraphraser:
    """Writes texts anew with a local language model, as DP-Prompt does.

    Each token is drawn with weight exp(clipped logit / temperature). The number of tokens is
    bounded in advance, so that the loss of a text is, too: tokens * 2 width / temperature.

    Args:
        model: the folder or hub id of a causal or encoder-decoder model of transformers.
        epsilon: local DP of a whole text; or
        temperature: that of the draws, from which epsilon follows.
        tokens: most tokens of a text.
        width, bounds: how logits are clipped, see `TokenDraw`.
        prompt: what the model reads, with {text} once.
        seed: makes draws repeatable; without it they come from the operating system.
        device: a torch device.

    Raises:
        ConfigError: an option is out of range, or both or none of epsilon and temperature are
            given.
    """

    model: str
    epsilon: float | None = None
    temperature: float | None = None
    tokens: int = 128
    width: float = 10.0
    bounds: tuple[float, float] | None = None
    prompt: str = field(default=PROMPT, repr=False)
    seed: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.temperature is None):
            raise ConfigError("give epsilon or temperature, not both")
        if self.epsilon is not None and not self.epsilon > 0:
            raise ConfigError("epsilon must be above 0")
        if self.tokens < 1:
            raise ConfigError(f"tokens must be 1 or more, got {self.tokens}")
        if self.prompt.count("{text}") != 1:
            raise ConfigError("the prompt must hold {text} once")
        self.draw  # noqa: B018 (options are checked before a model is loaded)

    @cached_property
    def draw(self) -> TokenDraw:
        """How a token is drawn."""
        temperature = self.temperature
        # Options out of range are told by `TokenDraw`, in its own words.
        if temperature is None:
            assert self.epsilon is not None
            TokenDraw(temperature=1.0, width=self.width, bounds=self.bounds)
            temperature = find_temperature(
                self.epsilon, self.tokens, width=self.width, bounds=self.bounds
            )
        return TokenDraw(temperature=temperature, width=self.width, bounds=self.bounds)

    @cached_property
    def generator(self) -> TextGenerator:
        """The model, loaded when it is first used."""
        return load_generator(self.model, device=self.device)

    @cached_property
    def _randomness(self) -> Randomness:
        return SystemRandomness() if self.seed is None else SeededRandomness(self.seed)

    def paraphrase(self, texts: Iterable[str]) -> list[Paraphrase]:
        """Writes each text anew.

        Raises:
            ModelError: the model cannot be loaded, or has no room for a text.
        """
        texts = list(texts)
        check_texts(texts)
        return [self._write(text) for text in texts]

    def _write(self, text: str) -> Paraphrase:
        steps = self._randomness.open([self.tokens]).split_rows(1)

        def choose(logits: Floats) -> int:
            draws: Draws
            _, draws = next(steps)
            return self.draw.draw(draws, logits)

        before, after = self.prompt.split("{text}")
        written = self.generator.write(before, text, after, tokens=self.tokens, choose=choose)
        return Paraphrase(
            text=written,
            epsilon=self.tokens * self.draw.loss,
            token_epsilon=self.draw.loss,
            tokens=self.tokens,
            temperature=self.draw.temperature,
            model=self.generator.name,
            repeatable=self.seed is not None,
        )
