"""Azure's paths for the routes of OpenAI: by deployment, and with its own version.

In: nothing. Out: `PathPrefix`es.
Not here: the routes (`chat`, `completions`, `embeddings`, `responses`), and what Azure adds to
answers (their tables).

A deployment stands in the path, and counts as the model that a request names: rules of a policy go
by it. Azure does not read the field `model` there, so it is not sent.
"""

from textveil.gateway.protocols.field_rules import pattern
from textveil.gateway.protocols.models import MODEL_ID
from textveil.gateway.protocols.operation import PathPrefix

API_VERSION = {"api-version": pattern(r"[A-Za-z0-9.\-]{1,40}")}
KEYS = ("api-key", "authorization")
ALL_ROUTES = ("openai.*", "models", "models.one")
BY_DEPLOYMENT = ("openai.chat", "openai.completions", "openai.embeddings")


def _build_prefix(path: str, names: tuple[str, ...]) -> PathPrefix:
    part = {"model": MODEL_ID} if "{model}" in path else {}
    return PathPrefix(
        path=path, names=names, fields={**part, **API_VERSION}, query=(*API_VERSION,), keys=KEYS
    )


PREFIXES = (
    _build_prefix("/openai/deployments/{model}", BY_DEPLOYMENT),
    _build_prefix("/openai/v1", ALL_ROUTES),
    _build_prefix("/openai", ALL_ROUTES),
)
