"""All routes of all APIs.

In: nothing. Out: `ENDPOINTS`.
Not here: what they are.
"""

from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.completions import COMPLETIONS
from textveil.gateway.protocols.contract import Endpoint
from textveil.gateway.protocols.embeddings import EMBEDDINGS
from textveil.gateway.protocols.messages import COUNT, MESSAGES
from textveil.gateway.protocols.models import MODELS, ONE_MODEL
from textveil.gateway.protocols.moderations import MODERATIONS
from textveil.gateway.protocols.responses import ROUTES

OPENAI = (CHAT, *ROUTES, COMPLETIONS, EMBEDDINGS, MODERATIONS)
ANTHROPIC = (MESSAGES, COUNT)
ENDPOINTS: tuple[Endpoint, ...] = (*OPENAI, *ANTHROPIC, MODELS, ONE_MODEL)
