"""Clients that stop, send too much, or keep a connection: each is answered or cut off, and nothing stays open."""

import json
import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_gateway import environment as environment

from textveil import Privatizer
from textveil.gateway import Gateway, Policy, ServingOptions
from textveil.gateway.serve import connection

ANSWER = {
    "object": "chat.completion",
    "choices": [{"message": {"role": "assistant", "content": "x"}}],
}
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "lantern"}]}).encode()
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
)
LIMIT = 2_000


@pytest.fixture(scope="module")
def asked():
    with serving_upstream(lambda _: ANSWER) as made:
        yield made


@pytest.fixture(scope="module")
def url(asked, small_table):
    running = ServingOptions(body_timeout=0.4, keepalive=0.4)
    with serving(
        Gateway(
            privatizer=Privatizer("placeholder", table=small_table),
            upstream=asked.url,
            policy=Policy(limit=LIMIT),
            running=running,
        )
    ) as found:
        yield found


@pytest.fixture
def client(url):
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port)) as made:
        made.settimeout(10)
        yield made


def read(client):
    """All until the gateway closes the connection, and the seconds that took."""
    began, content = time.monotonic(), b""
    while piece := client.recv(65_536):
        content += piece
    return content, time.monotonic() - began


def send_until_cut_off(client, pieces, pause):
    """The seconds, and the bytes that were taken, until the gateway ends the connection."""
    began, taken = time.monotonic(), 0
    with suppress(OSError):  # a reset, or a broken pipe
        for piece in pieces:
            taken += client.send(piece)
            time.sleep(pause)
    return time.monotonic() - began, taken


def length(number):
    return b"Content-Length: %d\r\n" % number


@pytest.mark.parametrize("part", [b"", BODY[:20]])
@pytest.mark.parametrize("head", [length(len(BODY)), b"Transfer-Encoding: chunked\r\n"])
def test_a_body_that_stops_is_answered_and_its_connection_closed(client, asked, head, part):
    part = b"%x\r\n%s" % (len(BODY), part) if head.startswith(b"T") and part else part
    before = len(asked.asked)
    client.sendall(HEAD + head + b"\r\n" + part)
    content, seconds = read(client)
    assert content.startswith(b"HTTP/1.1 408 ")
    assert b"the client sent no part of the body for 0.4 seconds" in content
    assert b"lantern" not in content
    assert 0.3 < seconds < 3
    assert len(asked.asked) == before


def test_a_body_that_comes_slowly_is_read(client):
    client.sendall(HEAD + length(len(BODY)) + b"Connection: close\r\n\r\n")
    for i in range(0, len(BODY), 20):
        time.sleep(0.15)
        client.sendall(BODY[i : i + 20])
    assert read(client)[0].startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("part", "says"), [(b"", b""), (HEAD, b"HTTP/1.1 408 ")])
def test_a_head_that_does_not_come_is_given_up(client, part, says):
    client.sendall(part)
    content, seconds = read(client)
    assert content[: len(says) or None] == says
    assert seconds < 3


def test_a_head_byte_by_byte_is_given_up(client):
    pieces = [HEAD[i : i + 1] for i in range(90)]
    seconds, _ = send_until_cut_off(client, pieces, 0.1)
    assert seconds < 5


@pytest.mark.parametrize("more", [b"", b"Expect: 100-continue\r\n"])
def test_a_large_body_is_refused_before_it_comes(client, more):
    client.sendall(HEAD + length(LIMIT + 1) + more + b"\r\n")
    content, seconds = read(client)
    assert content.startswith(b"HTTP/1.1 413 ")
    assert b"at most 2,000 bytes" in content
    assert b"100 Continue" not in content
    assert b"connection: close" in content.lower()
    assert seconds < 0.4


def test_a_body_in_chunks_is_cut_at_the_limit(client):
    client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    client.sendall(b"%x\r\n%s\r\n" % (LIMIT + 1, b" " * (LIMIT + 1)))
    content, seconds = read(client)  # the last chunk never comes
    assert content.startswith(b"HTTP/1.1 413 ")
    assert seconds < 0.4


def test_a_client_that_sends_on_reads_its_refusal_and_is_cut_off(client, monkeypatch):
    monkeypatch.setattr(connection, "LINGER_SECONDS", 0.5)
    client.sendall(HEAD + length(10**9) + b"\r\n")
    seconds, taken = send_until_cut_off(client, [b" " * 10_000] * 800, 0.01)
    assert 0.3 < seconds < 5
    assert taken > LIMIT
    assert client.recv(20).startswith(b"HTTP/1.1 413 ")


def test_an_expected_body_is_asked_for(client):
    client.sendall(HEAD + length(len(BODY)) + b"Expect: 100-continue\r\nConnection: close\r\n\r\n")
    assert client.recv(100).startswith(b"HTTP/1.1 100 ")
    client.sendall(BODY)
    assert b"HTTP/1.1 200 " in read(client)[0]


def test_a_connection_is_kept_for_a_while(client):
    request = HEAD + length(len(BODY)) + b"\r\n" + BODY
    for _ in range(3):  # longer together than one may be slow
        client.sendall(request)
        answer = client.recv(65_536)
        while b"}]}" not in answer:
            answer += client.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200 ")
        time.sleep(0.25)
    content, seconds = read(client)
    assert content == b""
    assert seconds < 3
