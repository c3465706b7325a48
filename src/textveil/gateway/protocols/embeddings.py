"""OpenAI embeddings: the vectors are those of the released texts.

In: JSON of requests and answers. Out: the tables of their leaves.
Not here: the policy on tokens, and the release of texts.
"""

from textveil.gateway.protocols.field_rules import PASSED
from textveil.gateway.protocols.leaf_tables import load_rules
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import Operation

EMBEDDING_REQUEST = load_rules("embeddings")["request"]

EMBEDDINGS = Operation(
    name="openai.embeddings",
    purpose="embeddings",
    path="/embeddings",
    request=EMBEDDING_REQUEST,
    answer=PASSED,
    needs=("input",),
    build_error=build_error,
)
