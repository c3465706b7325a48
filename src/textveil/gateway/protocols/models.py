"""Models: the upstream's list of models, of OpenAI and of Anthropic alike.

In: the query of a request. Out: the tables of its leaves; the answer holds no text.
Not here: requests to a model.
"""

from textveil.gateway.protocols.field_rules import ID, PASSED, pattern, record
from textveil.gateway.protocols.openai import build_error
from textveil.gateway.protocols.operation import ANTHROPIC_HEADERS, OPENAI_HEADERS, Operation

MODEL_ID = pattern(r"(?!.*\.\.)[A-Za-z0-9_:\-][A-Za-z0-9_.:/\-]{0,199}")
"""Rule for a model's name, without path escapes or email addresses."""
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")
VERSION_HEADERS = OPENAI_HEADERS | ANTHROPIC_HEADERS

MODELS = Operation(
    name="models",
    method="GET",
    has_body=False,
    path="/models",
    request=record(limit=pattern("[0-9]{1,6}"), after_id=ID, before_id=ID),
    answer=PASSED,
    build_error=build_error,
    keys=KEY_HEADERS,
    forwards=VERSION_HEADERS,
)
ONE_MODEL = Operation(
    name="models.one",
    method="GET",
    has_body=False,
    path="/models/{model:path}",
    request=record(model=MODEL_ID),
    answer=PASSED,
    build_error=build_error,
    keys=KEY_HEADERS,
    forwards=VERSION_HEADERS,
)
