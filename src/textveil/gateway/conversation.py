"""A conversation with a language model that sees only released text.

In: prompts, a privatizer, an endpoint. Out: the answers, restored while streaming, and both sides
of every turn.
Not here: what is protected (`pipeline`), how answers are restored (`session`), requests to a model
(`models.endpoint`).
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field

from textveil.models import Endpoint
from textveil.pipeline import Privatizer, Result
from textveil.session import Session


@dataclass(frozen=True, kw_only=True, eq=False)
class Turn:
    """Prompt and answer, each as the model and the user see it.

    Attributes:
        sent: the released prompt with its statement; `sent.private` is the prompt itself.
        received: the model's answer, unchanged.
        answer: the answer with the originals put back; not in the repr.
        whole: whether the answer is complete.
    """

    sent: Result
    received: str
    answer: str = field(repr=False)
    whole: bool

    def to_json(self) -> dict[str, object]:
        """Returns both sides of the turn as JSON, including private text.

        Private: it has the prompt and the restored answer.
        """
        return {
            "prompt": self.sent.private.text,
            "sent": self.sent.text,
            "received": self.received,
            "answer": self.answer,
            "whole": self.whole,
            "guarantee": self.sent.guarantee.to_json(),
        }


class Conversation:
    """Conversation in one session, in which a value keeps its placeholder.

    Only released prompts and the model's unchanged answers are sent; each prompt is drawn once and
    resent unchanged. For one caller at a time.

    Only released prompts and the model's own unchanged answers are sent; each prompt is drawn once
    and resent as it was. For one caller at a time.

    Args:
        privatizer: protects the user's prompts.
        endpoint: the model that answers.
        session: remembers placeholders and replacements; None for a new one.
        system: the system message; privatized too.

    Attributes:
        system: the released system message with its statement; None if there is none.
        turns: the turns so far. Complete ones are sent to the model again.
    """

    def __init__(
        self,
        privatizer: Privatizer,
        endpoint: Endpoint,
        session: Session | None = None,
        *,
        system: str | None = None,
    ) -> None:
        self._privatizer = privatizer
        self._endpoint = endpoint
        self._session = Session() if session is None else session
        self.system = None if system is None else privatizer.privatize(system, self._session)
        self.turns: list[Turn] = []

    @property
    def repeat_count(self) -> int:
        """Number of released messages that the next prompt resends.

        Answers do not count.
        """
        return (self.system is not None and bool(self.turns)) + sum(
            turn.whole for turn in self.turns
        )

    def ask(self, prompt: str) -> tuple[Result, Generator[str]]:
        """Releases a prompt and returns its restored answer as a stream.

        Nothing is sent before the first piece is requested. When the stream ends, complete or not,
        `turns` has one more entry.

        Raises:
            TextveilError: the prompt cannot be privatized; EndpointError: while streaming, as in
                `Endpoint.stream`.
        """
        result = self._privatizer.privatize(prompt, self._session)
        return result, self._stream_answer(result)

    def _stream_answer(self, result: Result) -> Generator[str]:
        received: list[str] = []
        answer: list[str] = []
        is_complete = False
        restorer = self._session.restorer()
        try:
            with closing(
                self._endpoint.stream([*self._list_messages(), ("user", result.text)])
            ) as pieces:
                for piece in pieces:
                    received.append(piece)
                    if restored := restorer.feed(piece):
                        answer.append(restored)
                        yield restored
            is_complete = True
        finally:
            if tail := restorer.close():
                answer.append(tail)
            self.turns.append(
                Turn(
                    sent=result,
                    received="".join(received),
                    answer="".join(answer),
                    whole=is_complete,
                )
            )
        # Behind `finally`: a generator that is being closed must not yield.
        if tail:
            yield tail

    def _list_messages(self) -> Iterator[tuple[str, str]]:
        if self.system is not None:
            yield "system", self.system.text
        for turn in self.turns:
            if turn.whole:
                yield "user", turn.sent.text
                yield "assistant", turn.received
