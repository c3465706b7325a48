"""Registry of all routes of all APIs, also of other packages.

In: nothing. Out: routes by API, and all of them.
Not here: the routes themselves; the names of the APIs (`config.registry`).
"""

from textveil.config import registry
from textveil.gateway.protocols.azure import PREFIXES
from textveil.gateway.protocols.bedrock import CONVERSE, CONVERSE_STREAM
from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.completions import COMPLETIONS
from textveil.gateway.protocols.embeddings import EMBEDDINGS
from textveil.gateway.protocols.gemini import GEMINI
from textveil.gateway.protocols.litellm import GENERIC, REDACT, REHYDRATE, REHYDRATE_PIECE
from textveil.gateway.protocols.messages import COUNT, MESSAGES
from textveil.gateway.protocols.models import MODELS, ONE_MODEL
from textveil.gateway.protocols.moderations import MODERATIONS
from textveil.gateway.protocols.ollama import ROUTES as OLLAMA
from textveil.gateway.protocols.operation import Operation
from textveil.gateway.protocols.responses import ROUTES


def openai() -> tuple[Operation, ...]:
    """OpenAI's chat completions, responses, completions, embeddings, moderations and models; whole or streamed."""
    return (CHAT, *ROUTES, COMPLETIONS, EMBEDDINGS, MODERATIONS, MODELS, ONE_MODEL)


def anthropic() -> tuple[Operation, ...]:
    """Anthropic's messages, whole or streamed, and the count of their tokens."""
    return (MESSAGES, COUNT)


def gemini() -> tuple[Operation, ...]:
    """Gemini's content, whole or streamed, the count of its tokens, embeddings and models."""
    return GEMINI


def bedrock() -> tuple[Operation, ...]:
    """Bedrock's Converse, whole or streamed."""
    return (CONVERSE, CONVERSE_STREAM)


def litellm() -> tuple[Operation, ...]:
    """LiteLLM's guardrails, which ask nobody."""
    return (GENERIC, REDACT, REHYDRATE, REHYDRATE_PIECE)


def ollama() -> tuple[Operation, ...]:
    """Ollama's own API: chats, completions and embeddings, whole or streamed, and its models."""
    return OLLAMA


def place_operations(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    """Returns the routes in all places where they are served."""
    placed = (copy for prefix in PREFIXES for copy in prefix.place(operations))
    return (*operations, *placed)


def load_operations() -> tuple[Operation, ...]:
    """Returns all routes of all APIs.

    Raises:
        ConfigError: another package offers an API that cannot be imported.
    """
    return tuple(
        operation
        for name in registry.list_names("protocol")
        for operation in registry.load("protocol", name)()
    )
