"""Runs textveil and other tools on the same invented texts, and fills the tables of docs/understand/compare.md.

In: one of the tools, installed in the environment of this Python. Out: a JSON row for each thing found, in
rows/compare.jsonl; the newest row of each counts.
Not here: rates with intervals on large data (`detection`); eight texts rank nobody.

Every tool wants its own environment, so this file needs nothing but the standard library and the tool:

    python compare.py textveil
    SPACY_MODEL=en_core_web_md python compare.py presidio
    SPACY_MODEL=en_core_web_md python compare.py litellm
    SPACY_MODEL=en_core_web_md python compare.py llm-guard
    python compare.py fill

LLM Guard's model of names comes from a hub. Where that cannot be reached, one that finds nothing stands in for it, so
its rows tell of its patterns and its way back alone. LiteLLM is its proxy; Presidio's servers and the model behind it
are threads of this process at a loopback address.
"""

import argparse
import atexit
import json
import os
import platform
import re
import resource
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from datetime import UTC, datetime
from difflib import SequenceMatcher
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from secrets import token_hex
from tempfile import mkdtemp
from threading import Thread
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import rowfiles

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows" / "compare.jsonl"
PAGE = HERE.parents[2] / "docs" / "understand" / "compare.md"


class Example(NamedTuple):
    """An invented text, and the parts of it that its writer would not want to send."""

    name: str
    text: str
    private: tuple[str, ...] = ()


EXAMPLES = (
    Example(
        "letter",
        "Write a polite letter to my landlord João Pereira (joao.pereira@example.org, +351 21 123 4567). My name is "
        "Maria Silva, I live at Rua do Sol 14, Lisbon, and my account is PT50 0002 0123 1234 5678 9015 4.",
        (
            *(
                "João Pereira",
                "joao.pereira@example.org",
                "+351 21 123 4567",
                "Maria Silva",
                "Rua do Sol 14",
                "Lisbon",
            ),
            "PT50 0002 0123 1234 5678 9015 4",
        ),
    ),
    Example(
        "message",
        "can you text my sister ingrid that i lost my job at nordlys shipping? call me on 07700 900123 after 6",
        ("ingrid", "nordlys shipping", "07700 900123"),
    ),
    Example(
        "server",
        "Deploy fails on db3.halvorsen.internal (10.20.4.17): user mhalvorsen, password hunter2-Blue!, key "
        "AKIA4JQZ7WPL2MXN8RTB. The traceback names /home/mhalvorsen/app.py.",
        ("db3.halvorsen", "10.20.4.17", "mhalvorsen", "hunter2-Blue!", "AKIA4JQZ7WPL2MXN8RTB"),
    ),
    Example(
        "clinic",
        "I am 52, was born on 3 May 1973, and Dr Aasen of Ullevål in Oslo found Crohn's disease. My patient number is "
        "4471-88-Q.",
        ("52", "3 May 1973", "Aasen", "Ullevål", "Oslo", "4471-88-Q"),
    ),
    Example(
        "German",
        "Bitte schreib Katrin Vogel, Lindenstraße 7, 34117 Kassel (0561 123456), dass ich am Montag nicht zur Arbeit "
        "komme.",
        ("Katrin Vogel", "Lindenstraße 7", "34117 Kassel", "0561 123456"),
    ),
    Example(
        "valley",
        "My neighbour, the only judge in our valley, drinks and beats his horse; may I report him to the court in "
        "town?",
        ("the only judge in our valley",),
    ),
    Example(
        "queue",
        "In Python, should I use Kafka or Redis with Celery for a queue in Django, and how does Jenkins run Selenium "
        "tests against Safari?",
    ),
    Example(
        "history",
        "What did Ada Lovelace and Charles Babbage write to each other before 1843, and why is Cambridge proud of "
        "Isaac Newton?",
    ),
)
TURNS = (
    "My address is anna.berg@example.org.",
    "Write to bo.lind@example.org and to anna.berg@example.org.",
)
"""Two messages of a conversation; the second names somebody new first."""


class Tool(NamedTuple):
    """A tool: what one session makes of several texts, and the way back, if it has one.

    `back` gets an answer in pieces, and returns the pieces that a reader sees.
    """

    release: Callable[[list[str]], list[str]]
    back: Callable[[list[str]], list[str]] | None


# ---- the tools -------------------------------------------------------------------------------------------------------


def textveil() -> Tool:
    """textveil's profile for prompts."""
    from textveil import Privatizer, Session

    privatizer = Privatizer.from_profile("prompt", seed=1)
    session = Session()

    def release(texts: list[str]) -> list[str]:
        nonlocal session
        session = Session()
        return [privatizer.privatize(text, session=session).text for text in texts]

    def back(pieces: list[str]) -> list[str]:
        restorer = session.restorer()
        return [*map(restorer.feed, pieces), restorer.close()]

    return Tool(release, back)


def _presidio() -> tuple[Any, Any]:
    """Presidio's two engines with their defaults, but for the model of spaCy that $SPACY_MODEL names."""
    import presidio_analyzer
    import yaml
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider
    from presidio_anonymizer import AnonymizerEngine

    defaults = Path(presidio_analyzer.__file__).parent / "conf" / "default.yaml"
    configuration = yaml.safe_load(defaults.read_text(encoding="utf-8"))
    configuration["models"] = [
        {"lang_code": "en", "model_name": os.environ.get("SPACY_MODEL", "en_core_web_lg")}
    ]
    engine = NlpEngineProvider(nlp_configuration=configuration).create_engine()
    return AnalyzerEngine(nlp_engine=engine), AnonymizerEngine()


def presidio() -> Tool:
    """Presidio: what its analyzer finds gives way to its type."""
    analyzer, anonymizer = _presidio()

    def release(texts: list[str]) -> list[str]:
        return [
            anonymizer.anonymize(text, analyzer.analyze(text, language="en")).text for text in texts
        ]

    return Tool(release, None)


def litellm(scope: str = "input") -> Tool:
    """LiteLLM's proxy with its guardrail `presidio`, between a client, two servers of Presidio and a model's."""
    from presidio_anonymizer.entities import RecognizerResult

    analyzer, anonymizer = _presidio()
    asked: dict[str, Any] = {}
    answer = ["Yes."]

    class Server(BaseHTTPRequestHandler):
        """Presidio's two services, and a model that notes what it is asked and answers with `answer`."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/analyze":
                self.say(
                    [
                        found.to_dict()
                        for found in analyzer.analyze(body["text"], language=body["language"])
                    ]
                )
            elif self.path == "/anonymize":
                found = [RecognizerResult.from_json(each) for each in body["analyzer_results"]]
                self.say(json.loads(anonymizer.anonymize(body["text"], found).to_json()))
            else:
                asked.update(body)
                self.stream()

        def say(self, said: object) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(said, default=str).encode())

        def stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            deltas = [({"role": "assistant", "content": piece}, None) for piece in answer]
            for delta, reason in (*deltas, ({}, "stop")):
                choice = {"index": 0, "delta": delta, "finish_reason": reason}
                event = {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "created": 0,
                    "model": "m",
                    "choices": [choice],
                }
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    behind = f"http://127.0.0.1:{server.server_port}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    guardrail = {
        "guardrail": "presidio",
        "mode": "pre_call",
        "default_on": True,
        "output_parse_pii": True,
    }
    guardrail |= {"presidio_analyzer_api_base": behind, "presidio_anonymizer_api_base": behind}
    model = {"model": "openai/m", "api_base": f"{behind}/v1", "api_key": "none"}
    configuration = Path(mkdtemp()) / "config.yaml"
    configuration.write_text(
        json.dumps(
            {
                "model_list": [{"model_name": "m", "litellm_params": model}],
                "guardrails": [
                    {
                        "guardrail_name": "pii",
                        "litellm_params": {**guardrail, "presidio_filter_scope": scope},
                    }
                ],
            }
        )
    )
    key = f"sk-{token_hex(32)}"
    proxy = subprocess.Popen(
        [
            Path(sys.executable).parent / "litellm",
            "--config",
            configuration,
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ],
        env={**os.environ, "LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def stop() -> None:
        proxy.terminate()
        proxy.wait()

    atexit.register(stop)

    def ask(texts: list[str]) -> list[str]:
        messages = [{"role": "user", "content": text} for text in texts]
        request = Request(
            f"http://127.0.0.1:{port}/v1/chat/completions",
            json.dumps({"model": "m", "stream": True, "messages": messages}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
        )
        with urlopen(request, timeout=60) as lines:
            events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
        return [event["choices"][0]["delta"].get("content") or "" for event in events]

    said: list[str] = []

    def release(texts: list[str]) -> list[str]:
        said[:], answer[:] = texts, ["Yes."]
        ask(texts)
        return [message["content"] for message in asked["messages"]]

    def back(pieces: list[str]) -> list[str]:
        answer[:] = pieces
        return ask(said)

    while True:
        try:
            urlopen(f"http://127.0.0.1:{port}/health/liveliness", timeout=5).close()
        except OSError:
            assert proxy.poll() is None, "the proxy ended"
            time.sleep(0.2)
        else:
            return Tool(release, back)


def llm_guard(strategy: str = "exact") -> Tool:
    """LLM Guard's `Anonymize` and `Deanonymize`, with a model that finds nothing in place of the hub's."""
    import structlog
    import torch
    from llm_guard.input_scanners import Anonymize
    from llm_guard.input_scanners.anonymize_helpers import DEBERTA_AI4PRIVACY_v2_CONF as DEFAULT
    from llm_guard.input_scanners.anonymize_helpers import analyzer
    from llm_guard.model import Model
    from llm_guard.output_scanners import Deanonymize
    from llm_guard.vault import Vault
    from presidio_analyzer.nlp_engine import SpacyNlpEngine
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    structlog.configure(processors=[], wrapper_class=structlog.make_filtering_bound_logger(50))
    folder = mkdtemp()
    known = Tokenizer(models.WordLevel({"[UNK]": 0, "[PAD]": 1}, unk_token="[UNK]"))
    known.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=known, unk_token="[UNK]", pad_token="[PAD]"
    ).save_pretrained(folder)
    shape = BertConfig(
        vocab_size=2,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        id2label={0: "O"},
    )
    with torch.no_grad():
        BertForTokenClassification(shape).save_pretrained(folder)

    class Words(SpacyNlpEngine):
        """Lemmas of words near a number, which is all that LLM Guard takes from spaCy; no pipeline for Chinese."""

        def load(self) -> None:
            import spacy

            self.nlp = {
                "en": spacy.load(os.environ.get("SPACY_MODEL", "en_core_web_sm")),
                "zh": spacy.blank("zh"),
            }

    def words(languages: list[str]) -> Words:
        engine = Words()
        engine.load()
        return engine

    analyzer._get_nlp_engine = words
    stand_in = Model(path=folder, pipeline_kwargs={"aggregation_strategy": "simple"})
    scanner = Anonymize(Vault(), recognizer_conf={**DEFAULT, "DEFAULT_MODEL": stand_in})

    def release(texts: list[str]) -> list[str]:
        scanner._vault = Vault()
        return [scanner.scan(text)[0] for text in texts]

    def back(pieces: list[str]) -> list[str]:
        return [
            Deanonymize(scanner._vault, matching_strategy=strategy).scan("", "".join(pieces))[0]
        ]

    return Tool(release, back)


TOOLS: dict[str, Callable[[], Tool]] = {
    "textveil": textveil,
    "presidio": presidio,
    "litellm": litellm,
    "llm-guard": llm_guard,
}
PACKAGES = (
    *(
        "textveil",
        "presidio-analyzer",
        "presidio-anonymizer",
        "litellm",
        "llm-guard",
        "spacy",
        "torch",
        "transformers",
    ),
)


# ---- what they did ---------------------------------------------------------------------------------------------------


def pieces_of(text: str) -> list[tuple[int, int]]:
    """Words and single signs of a text, with their places; blanks are none."""
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def judged(example: Example, released: str) -> tuple[list[str], list[str]]:
    """Private parts of which something stands where it stood, and other words that do not stand any more."""
    own, other = pieces_of(example.text), pieces_of(released)
    words = [example.text[slice(*place)].casefold() for place in own]
    matcher = SequenceMatcher(
        None, words, [released[slice(*place)].casefold() for place in other], autojunk=False
    )
    stands = {
        own[first + i] for first, _, size in matcher.get_matching_blocks() for i in range(size)
    }
    private = [
        match.span()
        for part in example.private
        for match in re.finditer(re.escape(part), example.text)
    ]

    def statement_form(place: tuple[int, int]) -> bool:
        return example.text[slice(*place)].isalnum()

    def within(place: tuple[int, int], part: tuple[int, int]) -> bool:
        return part[0] <= place[0] and place[1] <= part[1]

    left = [
        example.text[slice(*part)]
        for part in private
        if any(place in stands and statement_form(place) and within(place, part) for place in own)
    ]
    altered = [
        example.text[slice(*place)]
        for place in own
        if place not in stands
        and statement_form(place)
        and not any(within(place, part) for part in private)
    ]
    return list(dict.fromkeys(left)), altered


def came_back(
    example: Example, sent: str, answer: list[str], back: Callable[[list[str]], list[str]]
) -> dict[str, Any]:
    """How many of the private parts that were taken out an answer that repeats the release brings back."""
    seen = back(answer)
    gone = [part for part in example.private if part.casefold() not in sent.casefold()]
    found = [part for part in gone if part.casefold() in "".join(seen).casefold()]
    return {
        "value": len(found),
        "of": len(gone),
        "seen": sum(piece != "" for piece in seen),
        "answer": "".join(seen),
    }


def megabytes() -> float:
    """What the environment's packages take on the disk, but for pip's own."""
    root = Path(sysconfig.get_paths()["purelib"])
    own = ("pip", "setuptools", "_distutils", "pkg_resources", "distutils")
    files = (
        file
        for file in root.rglob("*")
        if file.is_file() and not file.relative_to(root).parts[0].startswith(own)
    )
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc") / 1e6


def measurements(name: str, repeat: int) -> list[dict[str, Any]]:
    """Everything about one tool."""
    started, before = [], 0.0
    for _ in range(repeat):
        subprocess.run([sys.executable, __file__, name, "--once"], check=True, capture_output=True)
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        started.append(children.ru_utime + children.ru_stime - before)
        before = children.ru_utime + children.ru_stime
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    tool = TOOLS[name]()
    rows: list[dict[str, Any]] = []
    for example in EXAMPLES:
        (released,) = tool.release([example.text])
        left, altered = judged(example, released)
        rows.append(
            {
                "what": f"release, {example.name}",
                "release": released,
                "left": left,
                "altered": altered,
            }
        )
    rows.append({"what": "turns", "release": tool.release(list(TURNS))})
    if tool.back is not None:
        letter = EXAMPLES[0]
        (sent,) = tool.release([letter.text])
        threes = [sent[at : at + 3] for at in range(0, len(sent), 3)]
        for way, answer in (
            ("repeated", [sent]),
            ("in small letters", [sent.lower()]),
            ("in pieces", threes),
        ):
            rows.append({"what": f"back, {way}", **came_back(letter, sent, answer, tool.back)})
    if name == "litellm":
        masking = litellm("both")
        (sent,) = masking.release([EXAMPLES[0].text])
        assert masking.back is not None
        rows.append(
            {
                "what": "back, filter scope both",
                **came_back(EXAMPLES[0], sent, [sent], masking.back),
            }
        )
    if name == "llm-guard":
        rows += [
            {"what": f"back, {strategy}", **turned_back(strategy)}
            for strategy in ("case_insensitive", "fuzzy", "combined_exact_fuzzy")
        ]
    rows.append({"what": "start", "value": min(started), "unit": "s"})
    rows.append({"what": "memory", "value": memory, "unit": "MB"})
    rows.append({"what": "packages", "value": megabytes(), "unit": "MB"})
    return rows


def turned_back(strategy: str) -> dict[str, Any]:
    """What LLM Guard's other ways of matching make of an answer that repeats the second turn: its first 80 signs."""
    tool = llm_guard(strategy)
    assert tool.back is not None
    sent = tool.release(list(TURNS))[1]
    return {"sent": sent, "answer": "".join(tool.back([sent]))[:80]}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


# ---- the page --------------------------------------------------------------------------------------------------------

Rows = dict[tuple[str, str], dict[str, Any]]
"""The newest row of each tool and thing."""


def stored() -> Rows:
    """The rows of the file."""
    return {(row["tool"], row["what"]): row for row in rowfiles.read(ROWS)}


def _cell(row: dict[str, Any], example: Example) -> str:
    told = (
        [f"{len(example.private) - len(row['left'])} of {len(example.private)}"]
        if example.private
        else []
    )
    if row["left"]:
        told.append(f"left: {', '.join(row['left'])}")
    if row["altered"]:
        told.append(f"altered: {' '.join(row['altered'])}")
    elif not told:
        told.append("nothing altered")
    return "; ".join(told)


def found(rows: Rows) -> str:
    """What became of the private parts, and what else was altered: a line for each text, a column for each tool."""
    tools = "textveil", "presidio"
    lines = [f"| text | {' | '.join(tools)} |", "|---" * (1 + len(tools)) + "|"]
    for example in EXAMPLES:
        cells = [_cell(rows[tool, f"release, {example.name}"], example) for tool in tools]
        lines.append(f"| **{example.name}**: {example.text} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def cost(rows: Rows) -> str:
    """Size, start and memory: a line for each tool."""
    columns = (
        "tool",
        "packages, MB",
        "processor time to the first release, s",
        "memory of the largest process, MB",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for tool in TOOLS:
        cells = [f"{rows[tool, what]['value']:.3g}" for what in ("start", "memory")]
        lines.append(f"| {tool} | {rows[tool, 'packages']['value']:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def way_back(rows: Rows) -> str:
    """What an answer that repeats the release brings back of what was taken out: a line for each tool that restores."""
    columns = (
        "tool",
        "answer repeats the release",
        "in small letters",
        "pieces that arrive of a stream",
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for tool in TOOLS:
        if (tool, "back, repeated") in rows:
            same, small, stream = (
                rows[tool, f"back, {way}"] for way in ("repeated", "in small letters", "in pieces")
            )
            cells = [f"{row['value']} of {row['of']}" for row in (same, small)]
            lines.append(f"| {tool} | {' | '.join(cells)} | {stream['seen']} |")
    return "\n".join(lines) + "\n"


_MARKED = re.compile(r"(<!-- compare ([a-z]+) -->\n).*?(<!-- end of compare -->)", re.DOTALL)


def fill(text: str, rows: Rows) -> str:
    """The page with the tables of the rows between its marks, which are like `<!-- compare found -->`."""
    tables = {"found": found, "cost": cost, "back": way_back}
    return _MARKED.sub(lambda match: f"{match[1]}\n{tables[match[2]](rows)}\n{match[3]}", text)


def main() -> None:
    """Runs one tool and appends its rows, or fills the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=(*TOOLS, "fill"))
    parser.add_argument(
        "--repeat", type=int, default=3, help="new processes; the least counts (default 3)"
    )
    parser.add_argument("--once", action="store_true", help="print one release and stop")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if options.tool == "fill":
        PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), stored()), encoding="utf-8")
    elif options.once:
        print(TOOLS[options.tool]().release([EXAMPLES[0].text])[0])
    else:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True
        ).stdout.strip()
        shared = {
            "tool": options.tool,
            "commit": commit if options.tool == "textveil" else None,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "versions": {name: known for name in PACKAGES if (known := _version(name)) is not None},
            "spacy_model": Path(os.environ["SPACY_MODEL"]).name
            if "SPACY_MODEL" in os.environ
            else None,
            "machine": platform.machine(),
            "cores": os.cpu_count(),
        }
        rows = measurements(options.tool, options.repeat)
        rowfiles.keep(ROWS, ({**row, **shared} for row in rows), ("tool", "what"))


if __name__ == "__main__":
    main()
