"""Measures what the gateway adds to a request: part of `make bench`.

In: the scripted server of the tests, which answers with what it is asked; prompts with names and addresses. Out: rows
for `run.py`, each measured beside asking the same server directly, in the same run.
Not here: what privatizing costs with other mechanisms (`run`), and whether answers are right (tests/gateway).

Beside the time that a client waits, a row has the processor time of the gateway (`processor`), which other work on the
machine changes less, and the machine's load.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from encoder import texts

OPTIONS = ("--profile", "prompt")
WORDS, FEW = 180, 60
REQUESTS = 100
CLIENTS, EACH = 50, 10
WORKERS, LOADING = 2, 30
"""Processes of a gateway that has several, and seconds that they may take to load."""
TURNS, CONVERSATIONS, ENDS = 40, 5, 4
"""Turns of a conversation; conversations; turns at the beginning and at the end that are compared."""
LONG = 200_000
"""Characters of a long prompt."""
GIVEN = ["Ana", "Ben", "Cleo", "Dario", "Edda", "Finn", "Greta", "Hugo", "Inga", "Jonas"]
FAMILY = [
    "Abelson",
    "Brandt",
    "Castell",
    "Dorrit",
    "Eklund",
    "Farkas",
    "Giannis",
    "Holub",
    "Ibsen",
    "Jokela",
]


@contextmanager
def process(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A server as a process of its own, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=Path(__file__).resolve().parents[3],
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.terminate()


def used(pid: int) -> float:
    """Seconds of the processors that a process and its workers have used."""
    clock = ~pid << 3 | 2  # how Linux numbers the clock of another process, in nanoseconds
    workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return time.clock_gettime(clock) + sum(map(used, map(int, workers)))


def prompts(words: int, count: int, name: str) -> list[str]:
    """So many prompts of so many words, each with a person and an address of its own."""
    made = []
    for i, text in enumerate(texts(words - 10, count)):
        given, family = GIVEN[i % 10], FAMILY[i // 10 % 10]
        made.append(
            f"{text} Write to {given} {family}, {given.lower()}.{name}{i}@mail.example, and ask for an answer."
        )
    return made


def body(said: Sequence[dict[str, str]] | str, stream: bool = False) -> dict[str, Any]:
    """A request of a conversation, or of one prompt."""
    messages = [{"role": "user", "content": said}] if isinstance(said, str) else said
    return {"model": "echo", "messages": messages, "stream": stream}


def asked(
    client: httpx2.Client, url: str, prompt: str, stream: bool = False
) -> tuple[float, float]:
    """Seconds until the first piece of the answer, and until its end."""
    start = time.perf_counter()
    with client.stream("POST", f"{url}/chat/completions", json=body(prompt, stream)) as answer:
        pieces = answer.iter_raw()
        next(pieces)
        first = time.perf_counter() - start
        for _ in pieces:
            pass
    answer.raise_for_status()
    return first, time.perf_counter() - start


class Beside:
    """A gateway and its upstream.

    Args:
        direct: URL of the upstream.
        through: URL of the gateway.
        pid: of the gateway.
        upstream: process of the upstream.
    """

    def __init__(self, direct: str, through: str, pid: int, upstream: int) -> None:
        self.direct, self.through, self.pid, self.upstream = direct, through, pid, upstream
        self.client = httpx2.Client(trust_env=False, timeout=120)

    def added(
        self, what: str, words: int, asking: Sequence[str], *, stream: bool = False
    ) -> dict[str, Any]:
        """What is added at the median: until the first piece of a stream, or until the end of an answer."""
        times: dict[str, list[float]] = {self.direct: [], self.through: []}
        marks = [used(self.pid)]
        for prompt in asking:
            for url, taken in times.items():
                taken.append(asked(self.client, url, prompt, stream)[0 if stream else 1])
            marks.append(used(self.pid))
        without, within = (1e3 * median(times[url]) for url in (self.direct, self.through))
        return {
            "what": f"gateway, {what}",
            "unit": "ms",
            "value": within - without,
            "direct": without,
            "through": within,
            "processor": 1e3 * (marks[-1] - marks[0]) / len(asking),
            "processor_median": 1e3 * median(after - before for before, after in pairwise(marks)),
            "words": words,
            "requests": len(asking),
        }

    def crowd(self, workers: int = 1) -> dict[str, Any]:
        """Requests in a second of many clients at once, each with a key of its own.

        Args:
            workers: how many processes answer.
        """

        async def one(
            client: httpx2.AsyncClient, url: str, number: int, asking: Sequence[str]
        ) -> None:
            for prompt in asking:
                headers = {"Authorization": f"Bearer client-{number}"}
                answer = await client.post(
                    f"{url}/chat/completions", json=body(prompt), headers=headers
                )
                answer.raise_for_status()

        async def all_of(url: str) -> float:
            limits = httpx2.Limits(max_connections=CLIENTS)
            async with httpx2.AsyncClient(trust_env=False, timeout=120, limits=limits) as client:
                shares = [prompts(FEW, EACH, f"c{number}n") for number in range(CLIENTS)]
                start = time.perf_counter()
                await asyncio.gather(
                    *(one(client, url, number, share) for number, share in enumerate(shares))
                )
                return CLIENTS * EACH / (time.perf_counter() - start)

        direct = asyncio.run(all_of(self.direct))
        before = used(self.pid), used(self.upstream), time.process_time()
        rate = asyncio.run(all_of(self.through))
        after = used(self.pid), used(self.upstream), time.process_time()
        gateway, upstream, client = (
            (end - start) / (CLIENTS * EACH) for start, end in zip(before, after, strict=True)
        )
        return {
            "what": f"gateway, {FEW} words, first sight, {CLIENTS} clients at once"
            + (f", {workers} workers" if workers > 1 else ""),
            "unit": "requests/s",
            "workers": workers,
            "value": rate,
            "direct": direct,
            "processor": 1e3 * gateway,
            "cores": gateway * rate,
            "upstream": 1e3 * upstream,
            "client": 1e3 * client,
            "words": FEW,
            "requests": CLIENTS * EACH,
        }

    def turns(self) -> dict[str, Any]:
        """What the last turns of conversations take over the first ones, in processor time."""
        talks = [self._talk(f"t{number}n") for number in range(CONVERSATIONS)]
        first = [
            turn for talk in talks for turn in talk[1 : 1 + ENDS]
        ]  # the very first has the system prompt, too
        last = [turn for talk in talks for turn in talk[-ENDS:]]
        return {
            "what": f"gateway, {FEW} words, turn {TURNS} over turn 1",
            "unit": "x",
            "value": mean(each[1] for each in last) / mean(each[1] for each in first),
            "processor": [1e3 * mean(each[1] for each in part) for part in (first, last)],
            "added": [1e3 * median(each[0] for each in part) for part in (first, last)],
            "words": FEW,
            "requests": TURNS * CONVERSATIONS,
        }

    def _talk(self, name: str) -> list[tuple[float, float]]:
        """Of each turn of a conversation the seconds that are added, and those of the processors."""
        said: list[dict[str, str]] = [{"role": "system", "content": "Answer letters."}]
        found = []
        for prompt in prompts(FEW, TURNS, name):
            said.append({"role": "user", "content": prompt})
            before, times = used(self.pid), []
            for url in (self.direct, self.through):
                start = time.perf_counter()
                answer = self.client.post(f"{url}/chat/completions", json=body(said))
                times.append(time.perf_counter() - start)
                answer.raise_for_status()
            found.append((times[1] - times[0], used(self.pid) - before))
            said.append(answer.json()["choices"][0]["message"])
        return found

    def long(self) -> Iterator[dict[str, Any]]:
        """What a long prompt takes alone, and what others wait beside another one, over what they wait alone."""
        first, other = (
            " ".join(prompts(WORDS, LONG // 800, name))[:LONG] for name in ("long", "other")
        )
        without = asked(self.client, self.direct, first)[1]
        before = used(self.pid)
        yield {
            "what": f"gateway, {LONG // 1000} kB, first sight, until the end",
            "unit": "s",
            "value": asked(self.client, self.through, first)[1],
            "direct": without,
            "processor": used(self.pid) - before,
            "requests": 1,
        }
        alone = [
            asked(self.client, self.through, prompt)[1] for prompt in prompts(FEW, 50, "alone")
        ]

        def ask() -> None:
            with httpx2.Client(trust_env=False, timeout=600) as client:
                asked(client, self.through, other)

        asking = threading.Thread(target=ask)
        asking.start()
        meanwhile = []
        for prompt in prompts(FEW, 2000, "meanwhile"):
            if not asking.is_alive():
                break
            meanwhile.append(asked(self.client, self.through, prompt)[1])
        asking.join()
        yield {
            "what": f"gateway, {FEW} words, first sight, beside {LONG // 1000} kB over alone",
            "unit": "x",
            "value": median(meanwhile) / median(alone),
            "alone": 1e3 * median(alone),
            "meanwhile": 1e3 * median(meanwhile),
            "words": FEW,
            "requests": len(meanwhile),
        }


def measurements() -> Iterator[dict[str, Any]]:
    """Each way to ask, by the gateway and directly, one after the other in turn."""
    for row in _measured():
        yield {**row, "options": list(OPTIONS), "load": os.getloadavg()[0]}


def _measured() -> Iterator[dict[str, Any]]:
    with process("tests.openai_server") as upstream:
        direct = f"http://127.0.0.1:{int(upstream.stdout.readline())}/v1"
        with process(
            "textveil", "gateway", "--upstream", direct, "--port", "0", *OPTIONS
        ) as running:
            beside = Beside(
                direct, running.stderr.readline().split()[-1], running.pid, upstream.pid
            )
            for prompt in prompts(WORDS, 5, "warm"):
                asked(beside.client, beside.through, prompt)
            first = prompts(WORDS, REQUESTS, "p")
            yield beside.added(f"{WORDS} words, first sight, added", WORDS, first)
            yield beside.added(f"{WORDS} words, remembered, added", WORDS, first)
            streamed = prompts(FEW, REQUESTS, "s")
            yield beside.added(
                f"{FEW} words, first sight, added until the first piece", FEW, streamed, stream=True
            )
            yield beside.turns()
            yield beside.crowd()
            yield from beside.long()
        with TemporaryDirectory() as folder:
            several = "--workers", str(WORKERS), "--store", f"sqlite:///{folder}/veil.db"
            arguments = (
                "textveil",
                "gateway",
                "--upstream",
                direct,
                "--port",
                "0",
                *OPTIONS,
                *several,
            )
            with process(*arguments, TEXTVEIL_KEYS=f"{folder}/keys") as running:
                beside = Beside(
                    direct, running.stderr.readline().split()[-1], running.pid, upstream.pid
                )
                time.sleep(LOADING)  # the address is said by the first of them
                for prompt in prompts(WORDS, 20, "warm"):
                    asked(beside.client, beside.through, prompt)
                yield beside.crowd(WORKERS)


if __name__ == "__main__":
    for found in measurements():
        print(json.dumps(found))
