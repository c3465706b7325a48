"""A model's server for `agent_costs`, in a process of its own: it calls a tool, or repeats, after a while.

In: requests of OpenAI's chat completions and responses, and Anthropic's messages, whole or streamed. Out: an answer; a
log with the bodies, one a line.
Not here: how answers are written (`agent_upstream`).

    python cost_upstream.py SECONDS [LOG]
"""

import sys
import threading
import time
from pathlib import Path
from typing import Any

from agent_upstream import INTERFACES, Call  # the file beside this one
from tests.gateway.servers import Asked, Upstream, serving_upstream

ECHO = "echo"
"""The model that says the last message again; others call a tool."""


class Model:
    """Answers requests.

    Args:
        delay: seconds until it answers.
        log: a file for the bodies.
    """

    def __init__(self, delay: float, log: Path | None = None) -> None:
        self.delay, self.log = delay, log

    def __call__(self, asked: Asked) -> Any:
        """The answer to a request."""
        body = asked.body
        said = body.get("messages", body.get("input"))
        if self.log:
            with self.log.open("ab") as file:
                file.write(asked.raw.replace(b"\n", b" ") + b"\n")
        time.sleep(self.delay)
        number = f"{len(said):03}"
        call = Call("Read", {"file_path": f"/tmp/work/part_{number}.py", "limit": "200"})
        text = "I look at the next part."
        if body["model"] == ECHO:
            call, text = None, said[-1]["content"]
        answering = next(INTERFACES[end] for end in INTERFACES if asked.path.endswith(end))
        return answering(text, call, number, bool(body.get("stream")))


def main(delay: str, log: str = "") -> None:
    """Serves until it is ended, and prints its port."""
    Upstream.request_queue_size = 128
    with serving_upstream(Model(float(delay), Path(log) if log else None)) as upstream:
        print(upstream.server_port, flush=True)
        while not threading.Event().wait(1):
            upstream.asked.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
