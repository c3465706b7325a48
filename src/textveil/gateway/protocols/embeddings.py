"""OpenAI embeddings: the vectors are those of the released texts.

In: JSON of requests and answers. Out: the tables of their leaves.
Not here: the policy on tokens, and the release of texts.
"""

from textveil.gateway.leaves import NAME, NUMBER, Act, one_of, record, whole
from textveil.gateway.protocols.completions import TEXTS
from textveil.gateway.protocols.contract import Operation
from textveil.gateway.protocols.openai import error

REQUEST = record(
    model=NAME,
    input=TEXTS,
    dimensions=NUMBER,
    encoding_format=one_of("float", "base64"),
    input_type=one_of("query", "document", "passage", "search_query", "search_document"),
    truncate_prompt_tokens=NUMBER,
    user=whole(Act.USER),
)
ANSWER = whole(Act.PASS)
"""Rule for an answer: numbers, and the name of the model."""

EMBEDDINGS = Operation(
    name="openai.embeddings",
    path="/embeddings",
    request=REQUEST,
    answer=ANSWER,
    needs=("input",),
    error=error,
)
