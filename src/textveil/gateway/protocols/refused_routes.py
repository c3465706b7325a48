"""Routes of APIs that the gateway does not serve, with what to do instead.

In: a path. Out: the error for a client, in the form of its API.
Not here: routes that are served (`registry`), the answer itself (`app`).

Nothing of a request for one is read or sent.
"""

from collections.abc import Callable
from typing import NamedTuple

import regex

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols import bedrock, gemini, messages, ollama, openai
from textveil.gateway.protocols.operation import JsonObject

FILES = (
    "files are not read: hide what is private in them first (`textveil protect FILE`, or `textveil "
    "privatize FILE` to share them), and upload the result to the provider itself"
)
BATCHES = (
    "they are files of requests, which it does not read: send the requests one by one, or protect "
    "the file first (`textveil protect FILE`) and upload the result to the provider itself"
)
SPEECH = "sound is not read: transcribe it on your own machine, and send the text"
PICTURES = "pictures are not read, nor what is asked of their makers: ask the provider itself"
STATE = "the provider would keep what is not read here: use /v1/responses or /v1/chat/completions"
OLLAMA = (
    "it manages models and sends no prompts: ask Ollama directly, with its own address in "
    "OLLAMA_HOST"
)


_BASE = regex.compile(r"^/(?:openai/deployments/[^/]+|openai/v1|openai|v1)(?=/)")


class RefusedRoute(NamedTuple):
    """Kind of route that is not served.

    Args:
        pattern: matches the beginning of its paths, without /v1.
        kind: its name.
        instead: what to do instead; "" where only the form of errors differs.
        build_error: converts an error to the form of its API.
        build_headers: returns what its API says of an error in headers.
    """

    pattern: str
    kind: str
    instead: str
    build_error: Callable[[RequestError], JsonObject] = openai.build_error
    build_headers: Callable[[RequestError], dict[str, str]] = lambda _: {}

    def matches(self, path: str) -> bool:
        """True if a path is of this kind."""
        bare = _BASE.sub("", path)
        return regex.match(rf"/(?:{self.pattern})(?:/|$)", bare) is not None

    def build_refusal(self) -> RequestError:
        """Builds the error for a client."""
        return RequestError(
            404, f"the gateway does not serve {self.kind}: {self.instead}. Nothing was sent"
        )


REFUSED_ROUTES = (
    RefusedRoute("messages/batches", "message batches", BATCHES, messages.build_error),
    RefusedRoute("skills|organizations?", "administration", "ask the provider itself"),
    RefusedRoute(
        "model/.+/(?:invoke|invoke-with-.*stream|count-tokens)|async-invoke",
        "invoke",
        "each model has other fields there: use converse or converse-stream",
        bedrock.build_error,
        bedrock.build_error_headers,
    ),
    RefusedRoute(
        "guardrail.*",
        "guardrails",
        "name the guardrail in a request of converse",
        bedrock.build_error,
        bedrock.build_error_headers,
    ),
    RefusedRoute(
        "v1beta/(?:batches|models/[^/]+:(?:async)?[bB]atch[^/]+)",
        "batches",
        BATCHES,
        gemini.build_error,
    ),
    RefusedRoute(
        "v1beta/(?:files|fileSearchStores|corpora|tunedModels|cachedContents)|upload",
        "files and caches",
        FILES,
        gemini.build_error,
    ),
    RefusedRoute("batches", "batches", BATCHES),
    RefusedRoute("files|uploads|containers", "files", FILES),
    RefusedRoute(
        "realtime",
        "realtime",
        "websockets and sound are not read: transcribe, and use /v1/responses or "
        "/v1/chat/completions with stream",
    ),
    RefusedRoute("audio", "audio", SPEECH),
    RefusedRoute("images|videos", "images and videos", PICTURES),
    RefusedRoute("fine_tuning|fine-tunes|evals", "fine-tuning and evaluations", FILES),
    RefusedRoute("vector_stores", "vector stores", FILES),
    RefusedRoute("assistants|threads|chatkit", "assistants and threads", STATE),
    RefusedRoute(
        "api/(?:pull|push|create|copy|delete|blobs)", "models of Ollama", OLLAMA, ollama.build_error
    ),
    RefusedRoute("api|systemone", "Ollama", "", ollama.build_error),
    RefusedRoute("v1beta", "Gemini", "", gemini.build_error),
)
"""Kinds of routes; the first that matches a path counts."""


def find_refused(path: str) -> RefusedRoute | None:
    """Finds the kind of a route that is not served; None for none."""
    return next((route for route in REFUSED_ROUTES if route.matches(path)), None)
