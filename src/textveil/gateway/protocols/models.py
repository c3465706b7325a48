"""Models: what the upstream serves, which many clients ask first; those of OpenAI and of Anthropic alike.

In: the query of a request. Out: the tables of its leaves; the answer holds no text.
Not here: what a model is asked.
"""

from textveil.gateway.leaves import ID, Act, record, shaped, whole
from textveil.gateway.protocols.contract import ANTHROPIC, OPENAI, Operation
from textveil.gateway.protocols.openai import error

MODEL = shaped(r"(?!.*\.\.)[A-Za-z0-9_:\-][A-Za-z0-9_.:/\-]{0,199}")
"""A model's name, which leads nowhere else; no address of anybody."""
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
