"""OpenAI completions, as OpenAI, vLLM, llama.cpp and similar servers speak them.

In: JSON of requests, answers and chunks. Out: the tables of their leaves; restored chunks.
Not here: conversations (`chat`, `responses`).
"""

from collections.abc import Iterator
from functools import partial

from textveil.gateway.answers import Restoring
from textveil.gateway.errors import RequestError
from textveil.gateway.leaves import (
    ID,
    NAME,
    NUMBER,
    Act,
    LeafRule,
    Path,
    each,
    either,
    fields,
    one_of,
    record,
    text,
    whole,
)
from textveil.gateway.protocols.chat import OTHERS
from textveil.gateway.protocols.contract import Body, Event, Operation
from textveil.gateway.protocols.openai import error

PROTECTED, MEDIA, USER, DROPPED = text(), whole(Act.MEDIA), whole(Act.USER), whole(Act.DROP)
TOKENS = LeafRule(numbers=Act.MEDIA)
"""Ids of tokens: text that nobody can read here."""
TEXTS = either(PROTECTED, each(either(PROTECTED, TOKENS, each(TOKENS))))
"""One or more texts, or token ids of one or more texts."""

REQUEST = record(
    **OTHERS,
    model=NAME,
    prompt=TEXTS,
    logit_bias=MEDIA,
    service_tier=one_of("auto", "default", "flex", "priority"),
    stop=either(PROTECTED, each(PROTECTED)),
    stream_options=record(include_usage=NUMBER, include_obfuscation=NUMBER),
    suffix=PROTECTED,
    user=USER,
    **fields(NUMBER, "frequency_penalty logprobs max_tokens n presence_penalty seed stream"),
    **fields(NUMBER, "temperature top_p"),
)
ANSWER = record(
    created=NUMBER,
    model=whole(Act.PASS),
    choices=each(
        record(
            index=NUMBER, text=PROTECTED, logprobs=DROPPED, finish_reason=ID, stop_reason=PROTECTED
        )
    ),
    obfuscation=DROPPED,
    system_fingerprint=whole(Act.PASS),
    usage=whole(Act.PASS),
    **fields(ID, "id object service_tier"),
)
"""Leaves of an answer, and of a chunk."""


class CompletionChunks:
    """Stream of the chunks of an answer; see `Stream`."""

    remembered = ()

    def __init__(self, restoring: Restoring) -> None:
        self._restoring = restoring
        self._open: dict[int, bool] = {}
        self._last: Body = {}
        self._done = False

    @property
    def messages(self) -> list[tuple[Body, Body]]:
        """Empty list, since clients never send completions back."""
        return []

    @property
    def ended(self) -> bool:
        """True once the whole answer has come."""
        return self._done or (bool(self._open) and not any(self._open.values()))

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores a chunk, with the held-back text where a choice ends."""
        if event.data == "[DONE]":
            self._done = True
            return
        choices = [each for each in event.data.get("choices") or () if isinstance(each, dict)]
        chunk = self._restoring.whole(
            {**event.data, "choices": choices}, ANSWER, partial(self._restore_piece, choices)
        )
        self._last = {
            name: value for name, value in chunk.items() if name not in ("choices", "usage")
        }
        for i, (choice, restored) in enumerate(zip(choices, chunk["choices"], strict=True)):
            index = choice.get("index", i)
            self._open.setdefault(index, True)
            if choice.get("finish_reason") is not None:
                restored["text"] = (restored.get("text") or "") + self._restoring.rest(index)
                self._open[index] = False
        yield Event(event.name, chunk)

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of open choices, and the last event."""
        for index in sorted(index for index, is_open in self._open.items() if is_open):
            if rest := self._restoring.rest(index):
                choice = {"index": index, "text": rest, "finish_reason": None}
                yield Event("", {**self._last, "choices": [choice]})
        if self.ended:
            yield Event("", "[DONE]")

    def _restore_piece(self, choices: list[Body], path: Path, piece: str, act: Act) -> str:
        if path[-1] != "text":
            return self._restoring.text(piece, act)
        i = path[1]
        assert isinstance(i, int)
        return self._restoring.piece(choices[i].get("index", i), piece)

    def failed(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("", error(refused))


COMPLETIONS = Operation(
    name="openai.completions",
    path="/completions",
    request=REQUEST,
    answer=ANSWER,
    needs=("prompt",),
    stream=CompletionChunks,
    error=error,
)
