"""OpenAI moderations: the scores are those of the released texts.

In: JSON of requests and answers. Out: the tables of their leaves.
Not here: how texts are released.
"""

from textveil.gateway.leaves import NAME, Act, each, either, record, text, typed, whole
from textveil.gateway.protocols.contract import Operation
from textveil.gateway.protocols.openai import error

PART = typed(text=record(text=text()), image_url=record(image_url=whole(Act.MEDIA)))
REQUEST = record(model=NAME, input=either(text(), each(either(text(), PART))))
ANSWER = whole(Act.PASS)
"""Rule for an answer: categories and scores."""

MODERATIONS = Operation(
    name="openai.moderations",
    path="/moderations",
    request=REQUEST,
    answer=ANSWER,
    needs=("input",),
    error=error,
)
