"""What a data set is to the bench: examples with the texts to privatize and what answers are judged by.

In: nothing. Out: `Example`, `DataSet`.
Not here: where examples come from (`data`), and what was released of them (`trials`).
"""

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Literal, Self

from textveil.errors import ConfigError

Kind = Literal["classification", "pairs", "reading", "choice", "text"]
"""A text with a label; two texts with one; a question and a text with answers; a question with options; a text."""

DIGEST = 16


@dataclass(frozen=True, kw_only=True)
class Example:
    """One row of a data set. Secret: its texts are what is privatized.

    Attributes:
        texts: one for each field of the data set.
        label: the number of its label, for classification, pairs and choice; None elsewhere.
        answers: what counts as right, for reading.
        group: what a slice is made of ("gold", "silver", a subject); empty where there is none.
    """

    texts: tuple[str, ...] = field(repr=False)
    label: int | None = None
    answers: tuple[str, ...] = field(default=(), repr=False)
    group: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """Examples of one kind.

    Attributes:
        name: "sst2".
        split: "train" or "test".
        kind: what an example is.
        fields: the names of an example's texts, in order: ("question", "context").
        labels: the names of the labels, for classification, pairs and choice; empty elsewhere.
        examples: at least one.
        source: where they come from: a file below the folder of corpora, or a hub's id.
        remarks: what a reader of figures has to know ("answers are silver for ...").

    Raises:
        ConfigError: an example does not fit the others.
    """

    name: str
    split: str
    kind: Kind
    fields: tuple[str, ...]
    labels: tuple[str, ...] = ()
    examples: tuple[Example, ...] = field(repr=False)
    source: str = ""
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.examples:
            raise ConfigError(f"the data set {self.name} must have an example at least, and has none")
        for i, example in enumerate(self.examples):
            if len(example.texts) != len(self.fields):
                raise ConfigError(
                    f"example {i} of {self.name} must have {len(self.fields)} texts, and has {len(example.texts)}"
                )
            if self.labels and not (example.label is not None and 0 <= example.label < len(self.labels)):
                raise ConfigError(f"example {i} of {self.name} must have one of {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.examples)

    def take(self, limit: int | None, start: int = 0) -> Self:
        """The examples from `start` on, at most `limit`; all of them for None."""
        return replace(self, examples=self.examples[start:][:limit])

    def only(self, groups: frozenset[str]) -> Self:
        """The examples of some groups."""
        return replace(self, examples=tuple(example for example in self.examples if example.group in groups))

    @property
    def digest(self) -> str:
        """A fingerprint of all texts and answers: two data sets with the same are the same for the bench."""
        found = blake2b(digest_size=DIGEST)
        for example in self.examples:
            parts = (*example.texts, str(example.label), *example.answers)
            found.update(repr(parts).encode("utf-8", "surrogatepass"))
        return found.hexdigest()
