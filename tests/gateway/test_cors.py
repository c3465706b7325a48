"""Pages of browsers and desktop programs: which may ask, and how a browser is told."""

import json
import shutil
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving, serving_upstream, stream_of

from textveil import Privatizer
from textveil.errors import ConfigError
from textveil.gateway import Gateway, GatewayKeys, Policy
from textveil.gateway.request.origin_check import is_desktop_page

MAIL = "zoe.quillimar@example.org"
LISTED, LOCAL, DESKTOP = "https://chat.example.org", "http://localhost:3000", "app://obsidian.md"
FOREIGN = "https://evil.example"
BODY = {"model": "m", "messages": [{"role": "user", "content": f"Write to {MAIL}."}]}


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt", protect={"detectors": ["patterns", "structure"]})


@pytest.fixture(scope="module")
def upstream():
    answers = {
        True: stream_of([{"content": "to <EMA"}, {"content": "IL_1>"}]),
        False: answer_of({"content": "to <EMAIL_1>"}),
    }
    with serving_upstream(lambda asked: answers[bool(asked.body.get("stream"))]) as made:
        yield made


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("keys") / "gateway.keys")
    return path, GatewayKeys(path, new=True).create("anna")


@contextmanager
def opened(hiding, upstream, key=None, **policy):
    made = Policy(keys=key and key[0], **policy)
    with serving(Gateway(privatizer=hiding, upstream=upstream.url, policy=made)) as url:
        yield url


def preflight(url, origin, method="POST"):
    asked = {
        "Origin": origin,
        "Sec-Fetch-Site": "cross-site",
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang",
        "Access-Control-Request-Private-Network": "true",
    }
    with httpx2.Client(trust_env=False) as http:
        return http.options(f"{url}/chat/completions", headers=asked)


def post(url, origin, **headers):
    asked = {"Origin": origin, "Sec-Fetch-Site": "cross-site"} | headers
    with httpx2.Client(trust_env=False, timeout=60) as http:
        return http.post(f"{url}/chat/completions", json=BODY, headers=asked)


def is_told(answer, origin):
    return answer.headers.get("access-control-allow-origin") == origin


def test_a_listed_page_may_ask(hiding, upstream):
    with opened(hiding, upstream, origins=(LISTED, DESKTOP.upper())) as url:
        for origin in (LISTED, DESKTOP):
            before = preflight(url, origin)
            assert before.status_code == 200
            assert is_told(before, origin)
            assert "x-stainless-lang" in before.headers["access-control-allow-headers"]
            assert before.headers["access-control-allow-private-network"] == "true"
            assert "access-control-allow-credentials" not in before.headers
            answer = post(url, origin)
            assert is_told(answer, origin)
            assert answer.json()["choices"][0]["message"]["content"] == f"to {MAIL}"
            assert answer.headers["access-control-expose-headers"] == "*"


@pytest.mark.parametrize("origin", [FOREIGN, LOCAL, DESKTOP, "null", f"{LISTED}.evil.example"])
def test_other_pages_are_refused(hiding, upstream, origin):
    before = len(upstream.asked)
    with opened(hiding, upstream, origins=(LISTED,)) as url:
        assert preflight(url, origin).status_code == 400
        answer = post(url, origin)
    assert answer.status_code == 403
    assert "allow-origin" in answer.json()["error"]["message"]
    assert not is_told(answer, origin)
    assert len(upstream.asked) == before


def test_pages_of_this_machine_need_a_key(hiding, upstream, key):
    path, secret = key
    with opened(hiding, upstream, (path, secret)) as url:
        for origin in (LOCAL, "http://127.0.0.1:8080", "http://[::1]:3000", DESKTOP):
            assert is_told(preflight(url, origin), origin)
            refused = post(url, origin)
            assert (refused.status_code, is_told(refused, origin)) == (401, True)
            assert post(url, origin, authorization=f"Bearer {secret}").status_code == 200
        for origin in (FOREIGN, "http://localhost.evil.example", "null"):
            assert preflight(url, origin).status_code == 400
            answer = post(url, origin, authorization=f"Bearer {secret}")
            assert (answer.status_code, is_told(answer, origin)) == (403, False)


def test_a_listed_page_changes_nothing_for_foreign_host_names(hiding, upstream):
    """DNS rebinding: the name that a browser looked up is not one of this machine."""
    with opened(hiding, upstream, origins=(LISTED,)) as url:
        assert post(url, LISTED, host="evil.example").status_code == 403


def test_pages_see_no_probes(hiding, upstream):
    with opened(hiding, upstream, origins=(LISTED,)) as url, httpx2.Client(trust_env=False) as http:
        for path in ("metrics", "ready", "health", ""):
            answer = http.get(f"{url.removesuffix('/v1')}/{path}", headers={"Origin": LISTED})
            assert not is_told(answer, LISTED)


@pytest.mark.parametrize(
    "origin", ["*", "null", "localhost:3000", "https://x.example/", "https://*.example", "a b://c"]
)
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises((ConfigError, ValueError), match="scheme://host"):
        Policy(origins=(origin,))


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (LOCAL, True),
        (DESKTOP, True),
        ("http://127.8.9.1", True),
        ("http://localhost.example", False),
        ("http://192.168.1.2", False),
        ("app://", False),
        ("file://", False),
        ("null", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_pages_of_this_machine(origin, expected):
    assert is_desktop_page(origin) is expected


# ---- in Chromium -----------------------------------------------------------------------------------------------------


class _Page(BaseHTTPRequestHandler):
    def log_message(self, format, *args):
        pass

    def do_GET(self):
        content = b"<!doctype html><title>page</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


ASK = """async ([url, stream]) => {
  try {
    const answer = await fetch(url + "/chat/completions", {method: "POST",
      headers: {"content-type": "application/json", "authorization": "Bearer x"},
      body: JSON.stringify({model: "m", stream, messages: [{role: "user", content: "Write to MAIL."}]})});
    return [answer.status, await answer.text(), answer.headers.get("textveil-protected")];
  } catch (error) { return [0, "", null]; }
}""".replace("MAIL", MAIL)


@pytest.mark.browser
def test_a_page_of_another_origin_in_chromium(hiding, upstream):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    assert program, "this test needs Chromium"
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _Page) for _ in range(2)]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    allowed, foreign = (f"http://127.0.0.1:{server.server_port}" for server in servers)
    try:
        with (
            opened(hiding, upstream, origins=(allowed,)) as url,
            sync_api.sync_playwright() as running,
        ):
            browser = running.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page()
            page.goto(allowed)
            status, text, protected = page.evaluate(ASK, [url, False])
            assert (status, protected) == (200, "EMAIL=1")
            assert json.loads(text)["choices"][0]["message"]["content"] == f"to {MAIL}"
            status, text, _ = page.evaluate(ASK, [url, True])
            assert status == 200
            assert MAIL in "".join(
                json.loads(line[6:])["choices"][0]["delta"].get("content", "")
                for line in text.splitlines()
                if line.startswith("data: {")
            )
            before = len(upstream.asked)
            page.goto(foreign)
            assert page.evaluate(ASK, [url, False]) == [0, "", None]
            assert len(upstream.asked) == before
            browser.close()
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
