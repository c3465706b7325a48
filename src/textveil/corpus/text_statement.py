"""The statement of a corpus of public texts in place of private ones.

In: records of parts, and the library. Out: `WholeTextStatement`, and all that it says as a sheet.
Not here: the statement of words (`statement`), and the statement about one text (`guarantee`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from textveil.corpus.statement import ReleaseLosses
from textveil.guarantee import MICRO, TextGuarantee, format_number
from textveil.render import SheetSection

SOURCES_NOTE = (
    "For every released text a file sources-*.jsonl says that it is public, and its id in the "
    "source of the library."
)


@dataclass(kw_only=True)
class WholeTextStatement(ReleaseLosses):
    """The guarantee for public texts in place of documents or sentences.

    Attributes:
        guarantee: the statement about all of them; None without any text.
        labels: the copied fields besides the id, which no bound covers.
    """

    guarantee: TextGuarantee | None = None
    labels: tuple[str, ...] = ()

    kind = TextGuarantee
    row_noun = "row"
    unit = "text"
    also_shows = "The release also shows"

    @property
    def stated(self) -> TextGuarantee | None:
        """The statement, which says whether labels are copied."""
        if self.guarantee is None or not self.labels:
            return self.guarantee
        return replace(self.guarantee, labels_covered=False)

    def to_json(self) -> dict[str, Any]:
        """Returns the statement as plain data, without the sheet."""
        return {
            "guarantee": None if self.stated is None else self.stated.to_json(),
            "losses": {name: amounts.to_json() for name, amounts in self.losses.items()},
            "words": {},
            "copied_fields": list(self.others),
            "identifying_fields": dict(self.identifiers),
            "rows_keep_order": True,
            "equal_texts_are_alike": self.equal,
            "placeholders_of_a_subject_are_alike": False,
            "mapping_is_kept": False,
        }

    def build_sentences(self) -> dict[str, str]:
        """Returns the sentences of the statement by subject."""
        guarantee = self.stated
        if guarantee is None:
            return {
                "texts": "The input has no text, so nothing was released."
            } | self._describe_copied()
        library = guarantee.library
        return {
            "text": guarantee.summary(),
            "document": self._describe_rows(guarantee),
            "person": self._describe_person(),
            "library": (
                f"Every released text stands in the library {library.name} ({library.source}), "
                f"and is passed on under its licence: {library.licence}. Names and facts in it "
                "are those of the library."
            ),
            **self._describe_copied(),
            **self._describe_order(),
            **self._describe_equality(),
        }

    def _list_facts(self) -> list[tuple[str, str]]:
        assert self.guarantee is not None, "there are texts"
        library = self.guarantee.library
        return [
            ("library", f"{library.name}: {library.texts:,} texts, {library.source}"),
            ("licence of the texts", library.licence),
            ("digest of the library", library.digest),
        ]

    def _explain_plainly(self, guarantee: TextGuarantee) -> Iterator[str]:
        yield guarantee.explain_plainly()

    def _build_middle(self, sentences: Mapping[str, str]) -> SheetSection:
        return SheetSection(
            heading="Whose texts these are", paragraphs=[sentences["library"], SOURCES_NOTE]
        )

    def _describe_rows(self, guarantee: TextGuarantee) -> str:
        """Returns a sentence on what a row loses, with all its texts."""
        largest, median = (
            format_number(amount / MICRO)
            for amount in (self.documents.largest, self.documents.median)
        )
        parts = "texts" if guarantee.sentences is None else "sentences"
        half = ""
        if self.documents.number > 1:
            half = f"; half of the {self.documents.number:,} lose {median} at most"
        return f"A row loses epsilon {largest} at most, the sum over its {parts} in local DP{half}."
