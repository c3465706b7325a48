"""Models: the upstream's list of models, of OpenAI and of Anthropic alike.

In: the query of a request. Out: the tables of its leaves; the answer holds no text.
Not here: requests to a model.
"""

from textveil.gateway.leaves import ID, Act, record, shaped, whole
from textveil.gateway.protocols.contract import ANTHROPIC, OPENAI, Operation
from textveil.gateway.protocols.openai import error

MODEL = shaped(r"(?!.*\.\.)[A-Za-z0-9_:\-][A-Za-z0-9_.:/\-]{0,199}")
"""Rule for a model's name, without path escapes or email addresses."""
KEYS = ("authorization", "x-api-key")
VERSIONS = OPENAI | ANTHROPIC
ANSWER = whole(Act.PASS)

MODELS = Operation(
    name="models",
    method="GET",
    has_body=False,
    path="/models",
    request=record(limit=shaped("[0-9]{1,6}"), after_id=ID, before_id=ID),
    answer=ANSWER,
    error=error,
    keys=KEYS,
    forwards=VERSIONS,
)
ONE_MODEL = Operation(
    name="models.one",
    method="GET",
    has_body=False,
    path="/models/{model:path}",
    request=record(model=MODEL),
    answer=ANSWER,
    error=error,
    keys=KEYS,
    forwards=VERSIONS,
)
