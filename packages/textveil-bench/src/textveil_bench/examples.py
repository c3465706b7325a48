"""Data sets for the bench: texts to privatize, and answers for judging.

In: nothing. Out: `Example`, `DataSet`.
Not here: the sources of examples (`data`), and their releases (`trials`).
"""

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Literal, Self

from textveil.errors import ConfigError

ExampleKind = Literal["classification", "pairs", "reading", "choice", "text"]
"""The kind of examples.

A labelled text; two texts with a label; a question and a text with answers; a question with
options; a text.
"""

DIGEST_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example of a data set; secret, as its texts are private.

    Attributes:
        texts: one for each field of the data set.
        label: index of its label, for classification, pairs and choice; None otherwise.
        answers: the accepted answers, for reading.
        group: the name of its slice ("gold", "silver", a subject); empty for none.
    """

    texts: tuple[str, ...] = field(repr=False)
    label: int | None = None
    answers: tuple[str, ...] = field(default=(), repr=False)
    group: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """Examples of one kind.

    Attributes:
        name: such as "sst2".
        split: "train" or "test".
        kind: of the examples.
        fields: the names of an example's texts, in order: ("question", "context").
        labels: the names of the labels, for classification, pairs and choice; empty otherwise.
        examples: at least one.
        source: their origin: a file below the folder of corpora, or a hub id.
        remarks: remarks for readers of figures ("answers are silver for ...").

    Raises:
        ConfigError: an example does not match the others.
    """

    name: str
    split: str
    kind: ExampleKind
    fields: tuple[str, ...]
    labels: tuple[str, ...] = ()
    examples: tuple[Example, ...] = field(repr=False)
    source: str = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.examples:
            raise ConfigError(f"the data set {self.name} has no examples; it needs at least one")
        for i, example in enumerate(self.examples):
            if len(example.texts) != len(self.fields):
                raise ConfigError(
                    f"example {i} of {self.name} must have {len(self.fields)} texts, got "
                    f"{len(example.texts)}"
                )
            if self.labels and not (
                example.label is not None and 0 <= example.label < len(self.labels)
            ):
                raise ConfigError(
                    f"example {i} of {self.name} must have one of the {len(self.labels)} labels"
                )

    def __len__(self) -> int:
        return len(self.examples)

    def take(self, limit: int | None, start: int = 0) -> Self:
        """Takes at most `limit` examples from `start` on; None for all."""
        return replace(self, examples=self.examples[start:][:limit])

    def select_groups(self, groups: frozenset[str]) -> Self:
        """Selects the examples of some groups."""
        return replace(
            self, examples=tuple(example for example in self.examples if example.group in groups)
        )

    @property
    def digest(self) -> str:
        """A fingerprint of all texts and answers.

        Data sets with the same fingerprint count as the same.
        """
        hasher = blake2b(digest_size=DIGEST_BYTES)
        for example in self.examples:
            parts = (*example.texts, str(example.label), *example.answers)
            hasher.update(repr(parts).encode("utf-8", "surrogatepass"))
        return hasher.hexdigest()
