"""Requests with something private at any place: it is hidden, or the request is refused by its path.

The requests have every branch of every table and of the SDKs' types. One place of a request is changed at a time: a
field or item more, or another value. The rest is cut down to what leads there.
"""

import base64
import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from anthropic.types.beta import message_create_params
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from tests.gateway.sdk_samples import samples
from tests.gateway.specimens import specimens
from tests.gateway.written import shows

from textveil.detect import PrivateValue
from textveil.gateway.errors import RequestError
from textveil.gateway.policy.policy import Policy
from textveil.gateway.protocols import Operation, load_operations
from textveil.gateway.protocols.field_rules import Act, find_leaves
from textveil.gateway.request import unknown_values
from textveil.gateway.request.parsed_request import ParsedRequest
from textveil.gateway.request.protect_message import MessageReleaser
from textveil.pipeline import Privatizer
from textveil.session import MessageChain, SessionStore

MAIL, CARD, IBAN = (
    "zoe.quillimar@blorvequine.org",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
)
NAME, PHONE = "Zoe Quillimar", "+49 30 90182047"
CANARIES = (MAIL, CARD, IBAN, NAME, PHONE)
SURNAME = "quillimar"

NEW_NAMES = ("new", "id_of_user", "x-new-field", "trace")

REASONS = (
    "cannot be protected",  # media, and fields that are refused
    "is a private number",
    "has something private in it, and names and ids",
    "has a private value in pieces",
    "two fields would get one name",
    "has the wrong type or an unknown value",  # a part of the path of the upstream's URL
)
"""Why a request may be refused."""

Path = tuple[str | int, ...]


class Change(NamedTuple):
    """One place of a request, what stands there, and what of it must not be sent."""

    operation: Operation
    body: dict[str, Any]
    path: Path
    secrets: tuple[str, ...]


# ---- requests --------------------------------------------------------------------------------------------------------

SDK_TYPES = {
    "openai.chat": CompletionCreateParamsBase,
    "openai.responses": ResponseCreateParamsBase,
    "anthropic.messages": message_create_params.MessageCreateParamsBase,
}


def _write(act: Act) -> Any:
    return None if act in (Act.MEDIA, Act.REFUSE) else "word"


@cache
def requests() -> list[tuple[Operation, dict[str, Any]]]:
    """Requests of all APIs."""
    found = []
    for operation in load_operations():
        if operation.has_body and operation.guardrail is None:
            bodies = specimens(operation.request, _write)
            found += [(operation, body) for body in bodies]
            if operation.name in SDK_TYPES:
                found += [(operation, each) for each in samples(SDK_TYPES[operation.name])]
    return found


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all values in JSON."""
    yield path
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, step))


def cut(value: Any, path: Path, new: Any) -> Any:
    """JSON with another value at a path, and of the rest only what says what the objects around it are."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(value, list):
        return [cut(value[step], rest, new)]  # type: ignore[index]
    tags = {name: value[name] for name in ("type", "role") if name in value}
    return {**tags, step: cut(value.get(step), rest, new)}


# ---- what is put there -----------------------------------------------------------------------------------------------


def write_text(rng: random.Random, canary: str) -> Any:
    """A value with text in which a canary is; any place may have it."""
    return rng.choice(
        (
            canary,
            canary.replace(" ", "") if canary in (CARD, IBAN) else canary,
            f"Ask {canary} now",
            f"{canary.upper()} ",
            {"note": canary},
            {canary: rng.choice((1, None, True, "x", {}))},
            [canary, {"deep": [{"of": canary}, None]}],
            {"a": {"b": {"c": {"d": [[canary]]}}}},
            json.dumps({"to": canary, "n": [1, canary]}),
            f'{{"to": "{canary}", "to": "x"}}',
            {"type": "new_part", "text": canary, "content": [{"type": "newer", canary: canary}]},
            {"role": "critic", "name": canary, "content": canary},
            {"": canary, " ": [canary]},
        )
    )


def write_other(rng: random.Random, canary: str) -> tuple[Any, tuple[str, ...]]:
    """A value that hides a canary, or media, and what of it must not be sent."""
    digits = int(CARD.replace(" ", ""))
    media = base64.b64encode(rng.randbytes(300)).decode()
    sentence = f"Please write to {canary} today, and tell nobody of it. " * rng.choice((1, 6))
    encoded = base64.b64encode(sentence.encode()).decode()
    at = rng.randrange(3, len(MAIL) - 3)
    codes = [ord(char) for char in MAIL]
    number = rng.choice((digits, float(digits), digits / 1e12, -digits, {"n": [0, digits]}))
    pieces = rng.choice(
        ([4111, 1111, 1111, 1111], {"a": [[4111, 1111], [1111, 1111]]}, [*map(int, str(digits))])
    )
    made: list[tuple[Any, tuple[str, ...]]] = [
        (encoded, (encoded,)),
        (media, (media,)),
        ({"image": f"data:image/png;base64,{media[:40]}"}, (media[:40],)),
        ([media[:150], media[150:]], (media[:150],)),
        ([MAIL[:at], MAIL[at:]], ()),
        ([f"data:image/png;base64,{media[:40]}", canary, {canary: media}], ()),
        (number, ()),
        (pieces, ()),
        (codes, (json.dumps(codes)[1:-1],)),
        ({"phone": 493090182047}, ("493090182047",)),
    ]
    return rng.choice(made)


def change(rng: random.Random) -> Change:
    """A request in which one place is changed."""
    operation, body = rng.choice(requests())
    path = rng.choice([*places(body)])
    canary = rng.choice(CANARIES)
    value: Any = body
    for step in path:
        value = value[step]
    if isinstance(value, dict) and (not path or rng.random() < 0.8):
        names = (*NEW_NAMES, f"of {canary}", canary, "")
        path = (*path, rng.choice([name for name in names if name not in value]))
    case = Change(operation, _cut_request(operation, body, path, write_text(rng, canary)), path, ())
    # What a table names has its own rules for numbers, media and what is encoded.
    new, secrets = write_other(rng, canary)
    other = case._replace(body=_cut_request(operation, body, path, new), secrets=secrets)
    return other if rng.random() < 0.5 and _is_unknown(other) else case


def _cut_request(operation: Operation, body: dict[str, Any], path: Path, new: Any) -> Any:
    changed = cut(body, path, new)
    for need in operation.needs:
        changed.setdefault(need, "word" if need == "model" else body.get(need, ["word"]))
    return changed


def _is_unknown(case: Change) -> bool:
    """Whether no table names the changed place."""
    leaves = find_leaves(case.body, case.operation.request)
    return any(leaf.act is Act.UNKNOWN and leaf.path == case.path for leaf in leaves) and (
        isinstance(case.path[-1], str) and case.path[-1] in (*NEW_NAMES, "")
    )


# ---- what becomes of it ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release() -> MessageReleaser:
    return MessageReleaser.build(Privatizer.from_profile("prompt"))


def send(release: MessageReleaser, case: Change, policy: Policy) -> dict[str, Any]:
    """The body that is sent; the session hides a name already."""
    request = ParsedRequest(case.operation, case.body, policy, lambda name: "user-1")
    links = SessionStore().links("client")
    chain = MessageChain(links, "client", "basis", request.messages, request.context)
    chain.session.hide([PrivateValue("PERSON", NAME, 1.0)])
    chain.release(release)
    texts = [link.texts for link in chain.links]
    return request.build_body(texts, chain.lookup_signed(request.signed))


def find_leaks(sent: Any, secrets: tuple[str, ...]) -> list[str]:
    raw = json.dumps(sent, ensure_ascii=False)
    shown = [secret for secret in (*CANARIES, SURNAME) if shows(raw.encode(), secret)]
    return shown + [secret for secret in secrets if secret in raw]


def check_refusal(error: RequestError, case: Change, where: Any) -> None:
    """A refusal names the field and a known reason; a name of a field may be shown, but for its form."""
    assert error.param, where
    assert error.message.startswith(error.param), where
    assert any(reason in error.message for reason in REASONS), where
    assert find_leaks(error.message, case.secrets) in ([], [NAME, SURNAME]), where


def run(release: MessageReleaser, seed: int, count: int, media: Any = "refuse") -> int:
    """Sends changed requests; returns how many were sent."""
    rng, sent = random.Random(seed), 0
    for i in range(count):
        case = change(rng)
        if media == "pass" and not _is_unknown(case):
            continue  # what a table has as media passes unread
        try:
            body = send(release, case, Policy(media=media))
        except RequestError as error:
            where = (seed, i, case.operation.name, case.path, case.body, error.message)
            check_refusal(error, case, where)
            continue
        sent += 1
        leaks = find_leaks(body, case.secrets if media == "refuse" else ())
        assert leaks == [], (seed, i, case.operation.name, case.path, case.body, body)
    return sent


def test_nothing_private_is_sent_from_any_place(release):
    assert run(release, 1, 80) > 40


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_nothing_private_is_sent_from_many_places(release, seed):
    assert run(release, seed, 400) > 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 4))
def test_nothing_else_is_sent_where_media_pass(release, seed):
    assert run(release, seed, 500, "pass") > 75


def test_a_walker_that_passes_what_is_unknown_is_caught(release, monkeypatch):
    monkeypatch.setattr(ParsedRequest, "_decide_unknown", lambda *_: None)
    with pytest.raises(AssertionError):
        run(release, 1, 80)


@pytest.mark.parametrize(
    ("module", "name", "broken"),
    [
        (MessageReleaser, "_read_pieces", lambda _, value: value),
        (MessageReleaser, "_release_name", lambda _, text, session: text),
        (unknown_values, "is_unreadable", lambda text: False),
        (unknown_values.UnknownValue, "rebuild", lambda self, _: (self._path[-1], self._value, "")),
    ],
    ids=["pieces", "names", "media", "release"],
)
@pytest.mark.slow
def test_a_reader_that_lacks_a_part_is_caught(release, monkeypatch, module, name, broken):
    monkeypatch.setattr(module, name, broken)
    with pytest.raises(AssertionError):
        run(release, 1, 500)
