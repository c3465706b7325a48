"""Measures what the gateway adds to a request: part of `make bench`.

In: the scripted server of the tests, which answers with what it is asked; prompts. Out: rows for `run.py`.
Not here: what privatizing costs with other mechanisms (`run`), and whether answers are right (tests/gateway).
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
from encoder import texts

WORDS = 180
REQUESTS = 200
WAYS = {
    "chat without tagger": ("--profile", "prompt", "-o", "protect.detectors=[patterns]"),
    "placeholder": ("--mechanism", "placeholder"),
    "noise": ("--mechanism", "noise", "--epsilon", "70"),
}
"""How requests are privatized."""


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A server as a process of its own, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=Path(__file__).resolve().parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.terminate()


def asked(client: httpx2.Client, url: str, prompt: str, stream: bool) -> tuple[float, float]:
    """Seconds until the first piece of the answer, and until its end."""
    body = {"model": "echo", "messages": [{"role": "user", "content": prompt}], "stream": stream}
    start = time.perf_counter()
    with client.stream("POST", f"{url}/chat/completions", json=body) as answer:
        pieces = answer.iter_raw()
        next(pieces)
        first = time.perf_counter() - start
        for _ in pieces:
            pass
    answer.raise_for_status()
    return first, time.perf_counter() - start


def measurements() -> Iterator[dict[str, Any]]:
    """Medians of requests that go by the gateway and directly, one after the other in turn."""
    prompts = texts(WORDS, REQUESTS)
    with process("tests.openai_server") as upstream, httpx2.Client(trust_env=False) as client:
        direct = f"http://127.0.0.1:{int(upstream.stdout.readline())}/v1"
        for way, options in WAYS.items():
            with process("textveil", "gateway", "--upstream", direct, "--port", "0", *options) as running:
                through = running.stderr.readline().split()[-1]
                for stream in (False, True):
                    asked(client, through, prompts[0], stream)
                    taken = [[asked(client, url, prompt, stream) for url in (direct, through)] for prompt in prompts]
                    for i, until in enumerate(("the first piece", "the end")):
                        if stream or until == "the end":
                            without, within = (1e3 * median(each[by][i] for each in taken) for by in (0, 1))
                            yield {
                                "what": f"gateway, {way}, {'stream' if stream else 'one piece'}, added until {until}",
                                "unit": "ms",
                                "value": within - without,
                                "direct": without,
                                "through": within,
                                "options": list(options),
                                "words": WORDS,
                                "requests": REQUESTS,
                            }


if __name__ == "__main__":
    for found in measurements():
        print(json.dumps(found))
