"""The playground: a page that shows what would be sent, what that promises, and how an answer is restored.

In: what a person types in a browser of this machine. Out: a page, and the JSON that it asks for.
Not here: what programs ask (`gateway.routes`), how text is released (`pipeline`), and the colours (`show`).
"""

from textveil.gateway.playground.routes import Playground

__all__ = ["Playground"]
