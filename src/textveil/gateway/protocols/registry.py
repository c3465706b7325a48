"""All routes of all APIs.

In: nothing. Out: `ENDPOINTS`.
Not here: what they are.
"""

from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.contract import Endpoint
from textveil.gateway.protocols.messages import COUNT, MESSAGES

ENDPOINTS: tuple[Endpoint, ...] = (CHAT, MESSAGES, COUNT)
