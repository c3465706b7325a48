"""The statement of a corpus of public texts in place of private ones.

In: records of parts, and the library. Out: `WholeTextStatement`, and all that it says as a sheet.
Not here: the statement of words (`statement`), and the statement about one text (`guarantee`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from textveil.corpus.statement import STATEMENT_TITLE, ReleaseLosses
from textveil.guarantee import MICRO, TextGuarantee, format_number, join_parts
from textveil.render import Sheet, SheetSection, SheetTable

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
            **self._describe_equality(),
        }

    def build_sheet(self, facts: Sequence[tuple[str, str]]) -> Sheet:
        """Builds the complete statement as a sheet.

        Args:
            facts: what the release is, as names and values.
        """
        sentences, guarantee = self.build_sentences(), self.stated
        if guarantee is None:
            return Sheet(
                title=STATEMENT_TITLE,
                facts=facts,
                sections=[SheetSection(heading="In plain words", paragraphs=[*sentences.values()])],
            )
        library = guarantee.library
        remaining = [sentences[name] for name in ("copied", "equality") if name in sentences]
        return Sheet(
            title=STATEMENT_TITLE,
            facts=[
                *facts,
                ("library", f"{library.name}: {library.texts:,} texts, {library.source}"),
                ("licence of the texts", library.licence),
                ("digest of the library", library.digest),
            ],
            sections=[
                SheetSection(
                    heading="In plain words",
                    paragraphs=[guarantee.explain_plainly(), sentences["person"]],
                ),
                SheetSection(
                    heading="Whose texts these are",
                    paragraphs=[sentences["library"], SOURCES_NOTE],
                ),
                SheetSection(
                    heading="What is proved",
                    paragraphs=[sentences["text"], sentences["document"]],
                    tables=[
                        SheetTable(
                            head=("loss of a", "number", "largest", "median", "unbounded"),
                            rows=[*self._build_rows()],
                        )
                    ],
                ),
                SheetSection(
                    heading="What is not covered",
                    paragraphs=[
                        *remaining,
                        (
                            "The release also shows, computed from the private texts: "
                            f"{join_parts(guarantee.mask)}. Nothing is claimed about that either."
                        ),
                        (
                            "All this is for one release. A reader who gets another release of the "
                            "same texts, drawn anew, learns more: the bounds of both add up."
                        ),
                    ],
                ),
                SheetSection(heading="The statement in full", exact=guarantee.explain()),
            ],
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
