"""Policy: what the gateway does with what it cannot protect.

In: options, or a file. Out: `Policy`.
Not here: which values that concerns (`protocols`).
"""

from typing import Literal

from textveil.config import options


@options("policy.")
class Policy:
    """What the gateway does with what it cannot protect.

    Attributes:
        media: images, audio, files and token ids: "refuse" the request, or "pass" them as they are.
        schemas: what programs say about their tools: "protect" hides identifiers in it, "pass" sends it as it is.
        unknown: fields and values that the gateway does not know: "refuse" the request, or "drop" them.
        users: names of a program's users: "pseudonym", which is the same for the same user, or "drop".
    """

    media: Literal["refuse", "pass"] = "refuse"
    schemas: Literal["protect", "pass"] = "protect"
    unknown: Literal["refuse", "drop"] = "refuse"
    users: Literal["pseudonym", "drop"] = "pseudonym"
