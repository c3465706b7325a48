"""All routes of all APIs.

In: nothing. Out: `ENDPOINTS`.
Not here: what they are.
"""

from textveil.gateway.protocols.chat import CHAT
from textveil.gateway.protocols.contract import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (CHAT,)
