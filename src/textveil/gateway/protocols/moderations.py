"""OpenAI moderations: the scores are those of the released texts.

In: JSON of requests and answers. Out: the tables of their leaves.
Not here: how texts are released.
"""

from textveil.gateway.protocols.field_rules import PASSED
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import Operation

MODERATION_REQUEST = load_rules("moderations")["request"]

MODERATIONS = Operation(
    name="openai.moderations",
    path="/moderations",
    request=MODERATION_REQUEST,
    answer=PASSED,
    needs=("input",),
    build_error=build_error,
)
