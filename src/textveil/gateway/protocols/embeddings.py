"""OpenAI embeddings: the vectors are those of the released texts.

In: JSON of requests and answers. Out: the tables of their leaves.
Not here: the policy on tokens, and the release of texts.
"""

from textveil.gateway.protocols.completions import TEXT_INPUT
from textveil.gateway.protocols.field_rules import API_NAME, NUMBER, Act, any_value, choice, record
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import Operation

EMBEDDING_REQUEST = record(
    model=API_NAME,
    input=TEXT_INPUT,
    dimensions=NUMBER,
    encoding_format=choice("float", "base64"),
    input_type=choice("query", "document", "passage", "search_query", "search_document"),
    truncate_prompt_tokens=NUMBER,
    user=any_value(Act.USER),
)
EMBEDDING_ANSWER = any_value(Act.PASS)
"""Rule for an answer: numbers, and the name of the model."""

EMBEDDINGS = Operation(
    name="openai.embeddings",
    path="/embeddings",
    request=EMBEDDING_REQUEST,
    answer=EMBEDDING_ANSWER,
    needs=("input",),
    build_error=build_error,
)
