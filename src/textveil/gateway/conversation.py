"""A conversation with a language model that sees released text only.

In: prompts, a privatizer, an endpoint. Out: the answers, restored as they come, and both sides of every turn.
Not here: what is protected (`pipeline`), the way back (`session`), how a model is asked (`endpoint`).
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from textveil.models import Endpoint
from textveil.pipeline import Privatizer, Result
from textveil.session import Session


@dataclass(frozen=True, kw_only=True, eq=False)
class Turn:
    """A prompt and its answer, as the model has them and as the user has them.

    Attributes:
        sent: the released prompt with its statement; `sent.private` holds the prompt itself.
        received: the answer as it came.
        answer: the answer with what is private put back; in no repr.
        whole: whether the answer came to its end.
    """

    sent: Result
    received: str
    answer: str = field(repr=False)
    whole: bool

    def to_json(self) -> dict[str, object]:
        """Both sides. Private: it holds the prompt and the restored answer."""
        return {
            "prompt": self.sent.private.text,
            "sent": self.sent.text,
            "received": self.received,
            "answer": self.answer,
            "whole": self.whole,
            "guarantee": self.sent.guarantee.to_json(),
        }


class Conversation:
    """A conversation in one session, so that a value has the same placeholder in all of its prompts.

    What goes out is the released prompts, each drawn once and then sent again as it was, and the model's own answers
    as they came. For one caller at a time.

    Args:
        privatizer: protects what the user says.
        endpoint: answers.
        session: remembers placeholders and replacements; without one, the conversation has one of its own.
        system: what the model is told before; privatized too.

    Attributes:
        system: the release of what the model is told before, with its statement; None where it is told nothing.
        turns: the turns so far. The model is reminded of those that are whole.
    """

    def __init__(
        self, privatizer: Privatizer, endpoint: Endpoint, session: Session | None = None, *, system: str | None = None
    ) -> None:
        self._privatizer = privatizer
        self._endpoint = endpoint
        self._session = Session() if session is None else session
        self.system = None if system is None else privatizer.privatize(system, self._session)
        self.turns: list[Turn] = []

    def ask(self, prompt: str) -> tuple[Result, Generator[str]]:
        """The release of a prompt, and its answer piece by piece, restored.

        Nothing is sent before the first piece is asked for. When the pieces end, whether the answer did or not,
        `turns` has one more.

        Raises:
            TextveilError: the prompt cannot be privatized; EndpointError: while the pieces come, as `Endpoint.stream`.
        """
        sent = self._privatizer.privatize(prompt, self._session)
        return sent, self._answer(sent)

    def _answer(self, sent: Result) -> Generator[str]:
        received: list[str] = []
        answer: list[str] = []
        whole = False
        restorer = self._session.restorer()
        try:
            with closing(self._endpoint.stream([*self._history(), ("user", sent.text)])) as pieces:
                for piece in pieces:
                    received.append(piece)
                    if restored := restorer.feed(piece):
                        answer.append(restored)
                        yield restored
            whole = True
        finally:
            if rest := restorer.close():
                answer.append(rest)
            self.turns.append(Turn(sent=sent, received="".join(received), answer="".join(answer), whole=whole))
        if rest:
            yield rest

    def _history(self) -> Iterator[tuple[str, str]]:
        if self.system is not None:
            yield "system", self.system.text
        for turn in self.turns:
            if turn.whole:
                yield "user", turn.sent.text
                yield "assistant", turn.received
