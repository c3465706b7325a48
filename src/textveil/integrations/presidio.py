"""Presidio: a textveil recognizer, and operators for an anonymizer.

The recognizer finds what textveil would hide; the operators replace and restore it.

In: texts for an analyzer; spans for an anonymizer. Out: results of a recognizer; placeholders of a
session, or draws.
Not here: Presidio as a detector (`detect.library_taggers`).
"""

import re
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from textveil.config.extras import explain_missing
from textveil.detect import TYPES, PrivateValue
from textveil.errors import ConfigError
from textveil.pipeline import Privatizer, Protector
from textveil.session import Changes, Session, SessionDelta, Snapshot
from textveil.text import Kind

with explain_missing():
    from presidio_analyzer import EntityRecognizer, RecognizerResult
    from presidio_anonymizer.operators import Operator, OperatorType

__all__ = ["NAMES", "TextveilOperator", "TextveilRecognizer", "TextveilRestorer"]

NAMES = {
    "CARD": "CREDIT_CARD",
    "EMAIL": "EMAIL_ADDRESS",
    "IBAN": "IBAN_CODE",
    "IP": "IP_ADDRESS",
    "MAC": "MAC_ADDRESS",
    "PHONE": "PHONE_NUMBER",
}
"""Presidio's names for our types.

The other types have the same names in both.
"""


class TextveilRecognizer(EntityRecognizer):
    """Finds the parts of a text that a protector hides.

    With all that it knows of the text as a whole.

    Args:
        protector: which one; None for the profile "prompt".
        language: of the texts, as Presidio calls it.
        score: of all that it finds.
    """

    def __init__(
        self, protector: Protector | None = None, *, language: str = "en", score: float = 0.95
    ) -> None:
        self._protector, self._score = protector or Protector(), score
        super().__init__([NAMES.get(type_, type_) for type_ in TYPES], "textveil", language)

    def load(self) -> None:
        """Loads nothing: the protector is there."""

    def analyze(
        self, text: str, entities: Sequence[str], nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        """Finds the parts of a text that would be hidden.

        Of types that are asked for, or that nobody can ask for.

        Raises:
            DetectorError: a detector failed.
        """
        results = []
        for finding in self._protector.find(text):
            type_ = NAMES.get(finding.type, finding.type)
            is_wanted = not entities or type_ in entities or type_ not in self.supported_entities
            if finding.hidden and is_wanted:
                results.append(RecognizerResult(type_, finding.start, finding.end, self._score))
        return results


_NUMBERING_SESSIONS: WeakKeyDictionary[Privatizer, Session] = WeakKeyDictionary()
"""Sessions that only number the spans of a privatizer.

For a privatizer without a session; they end with it.
"""


class TextveilOperator(Operator):
    """The operator "textveil", which replaces a span.

    By a placeholder of a session, or a privatizer's draw.

    It sees one span at a time. Its parameters: `session`, which restores answers and is needed
    unless there is `privatizer`, which releases the span's words; a span with a word that it lets
    pass, such as a public one, becomes a placeholder, numbered for this privatizer where there is
    no session.
    """

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """Returns the replacement of a span."""
        params = params or {}
        session: Session | None = params.get("session")
        privatizer = params.get("privatizer")
        if privatizer is not None:
            released = privatizer.privatize(text, session).released
            passed = (item.text for item in released.items if item.kind is Kind.VERBATIM)
            # a word that is drawn as itself may come out: that is the law
            if not any(map(str.isalnum, "".join(passed))):
                return str(released.text)
            session = session or _NUMBERING_SESSIONS.setdefault(privatizer, Session())
        type_ = (
            re.sub("[^A-Z0-9_]+", "_", str(params["entity_type"]).upper())[:64].strip("_")
            or "ENTITY"
        )
        assert session is not None, "or it was refused"

        def add_placeholder(snapshot: Snapshot) -> tuple[str, SessionDelta]:
            changes = Changes(snapshot)
            changes.add_private([PrivateValue(type_, text, 1.0)])
            return changes.assign_placeholder(type_, text), changes.build_delta()

        return session.transaction(add_placeholder)

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Checks the parameters; see the class.

        Raises:
            ConfigError: a parameter is missing, or is something else.
        """
        session, privatizer = (params or {}).get("session"), (params or {}).get("privatizer")
        if not isinstance(session, Session | None) or not isinstance(privatizer, Privatizer | None):
            raise ConfigError(
                "the operator textveil takes a Session as session and a Privatizer, not a "
                "Protector, as privatizer"
            )
        if session is None and privatizer is None:
            raise ConfigError("the operator textveil needs a session, or a privatizer")

    def operator_name(self) -> str:
        """Returns the operator's name: textveil."""
        return "textveil"

    def operator_type(self) -> OperatorType:
        """Returns the operator's type: it hides."""
        return OperatorType.Anonymize


class TextveilRestorer(Operator):
    """The operator "textveil" for a DeanonymizeEngine, which restores originals.

    From the parameter `session`.
    """

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        """Returns the original of a replaced span."""
        return str((params or {})["session"].restore(text, where="everywhere"))

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Checks the parameters; see the class.

        Raises:
            ConfigError: there is no session.
        """
        if not isinstance((params or {}).get("session"), Session):
            raise ConfigError("the operator textveil needs the session that hid the values")

    def operator_name(self) -> str:
        """Returns the operator's name: textveil."""
        return "textveil"

    def operator_type(self) -> OperatorType:
        """Returns the operator's type: it restores."""
        return OperatorType.Deanonymize
