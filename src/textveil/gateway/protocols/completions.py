"""OpenAI completions, as OpenAI, vLLM, llama.cpp and similar servers speak them.

In: JSON of requests, answers and chunks. Out: restored chunks.
Not here: the tables of their leaves (`leaf_tables`); conversations (`chat`, `responses`).
"""

from collections.abc import Iterator
from functools import partial

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.field_rules import Act, Path
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import Event, JsonObject, JsonPair, Operation
from textveil.gateway.protocols.restoring import AnswerRestorer

RULES = load_rules("completions")
COMPLETION_REQUEST, COMPLETION_ANSWER = RULES["request"], RULES["answer"]
"""Leaves of a request, and of an answer or a chunk."""


class CompletionChunks:
    """Stream of the chunks of an answer; see `Stream`."""

    upstream_names = ()

    def __init__(self, restorer: AnswerRestorer) -> None:
        self._restorer = restorer
        self._open: dict[int, bool] = {}
        self._last: JsonObject = {}
        self._done = False

    @property
    def messages(self) -> list[JsonPair]:
        """Empty list, since clients never send completions back."""
        return []

    @property
    def is_complete(self) -> bool:
        """True once the whole answer has come."""
        return self._done or (bool(self._open) and not any(self._open.values()))

    def feed(self, event: Event) -> Iterator[Event]:
        """Restores a chunk, with the held-back text where a choice ends."""
        if event.data == "[DONE]":
            self._done = True
            return
        choices = [item for item in event.data.get("choices") or () if isinstance(item, dict)]
        chunk = self._restorer.restore_json(
            {**event.data, "choices": choices},
            COMPLETION_ANSWER,
            partial(self._restore_piece, choices),
        )
        self._last = {
            name: value for name, value in chunk.items() if name not in ("choices", "usage")
        }
        for i, (answer_choice, restored) in enumerate(zip(choices, chunk["choices"], strict=True)):
            index = answer_choice.get("index", i)
            self._open.setdefault(index, True)
            if answer_choice.get("finish_reason") is not None:
                restored["text"] = (restored.get("text") or "") + self._restorer.close_text(index)
                self._open[index] = False
        yield Event(event.name, chunk)

    def close(self) -> Iterator[Event]:
        """Yields the held-back text of open choices, and the last event."""
        for index in sorted(index for index, is_open in self._open.items() if is_open):
            if tail := self._restorer.close_text(index):
                choice = {"index": index, "text": tail, "finish_reason": None}
                yield Event("", {**self._last, "choices": [choice]})
        if self.is_complete:
            yield Event("", "[DONE]")

    def _restore_piece(self, choices: list[JsonObject], path: Path, piece: str, act: Act) -> str:
        if path[-1] != "text":
            return self._restorer.restore_text(piece, act)
        i = path[1]
        assert isinstance(i, int)
        return self._restorer.restore_piece(choices[i].get("index", i), piece)

    def build_error_event(self, refused: RequestError) -> Event:
        """Writes an error as the last event of the stream."""
        return Event("", build_error(refused))


COMPLETIONS = Operation(
    name="openai.completions",
    purpose="text_completion",
    path="/completions",
    request=COMPLETION_REQUEST,
    answer=COMPLETION_ANSWER,
    needs=("prompt",),
    stream=CompletionChunks,
    build_error=build_error,
)
