"""The playground: a page with the sent text, its promise and restored answers.

In: text that a person types in a browser of this machine. Out: a page, and the JSON that it asks
for.
Not here: requests of programs (`gateway.api_routes`), the release of text (`pipeline`), and the
colours (`render`).
"""

from textveil.gateway.playground.routes import Playground

__all__ = ["Playground"]
