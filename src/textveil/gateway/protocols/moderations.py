"""OpenAI moderations: the scores are those of the released texts.

In: JSON of requests and answers. Out: the tables of their leaves.
Not here: how texts are released.
"""

from textveil.gateway.protocols.field_rules import (
    API_NAME,
    Act,
    any_value,
    array,
    record,
    text,
    union,
    variants,
)
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import Operation

INPUT_PART = variants(text=record(text=text()), image_url=record(image_url=any_value(Act.MEDIA)))
MODERATION_REQUEST = record(model=API_NAME, input=union(text(), array(union(text(), INPUT_PART))))
MODERATION_ANSWER = any_value(Act.PASS)
"""Rule for an answer: categories and scores."""

MODERATIONS = Operation(
    name="openai.moderations",
    path="/moderations",
    request=MODERATION_REQUEST,
    answer=MODERATION_ANSWER,
    needs=("input",),
    build_error=build_error,
)
