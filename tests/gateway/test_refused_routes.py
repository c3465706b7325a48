"""Routes that the gateway does not serve say what they are for and what to do instead; nothing is sent."""

import httpx2
import openai
import pytest
from tests.gateway.servers import serving, serving_upstream
from tests.gateway.test_gateway import client_of, environment  # noqa: F401

from textveil import Privatizer
from textveil.gateway import Gateway
from textveil.gateway.protocols import load_operations
from textveil.gateway.protocols.refused_routes import REFUSED_ROUTES, find_refused

anthropic = pytest.importorskip("anthropic")

CANARY = "Blorvequine"


@pytest.fixture(scope="module")
def upstream():
    with serving_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def gateway(upstream, small_table):
    privatizer = Privatizer("placeholder", table=small_table)
    with serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as address:
        yield address


@pytest.fixture
def client(gateway):
    with client_of(gateway) as made:
        yield made


def each_call(client):
    """Calls of the SDK of OpenAI, and words of the answer."""
    sound = (f"{CANARY}.mp3", b"\x00" * 100)
    return {
        "batches": lambda: client.batches.create(
            input_file_id="file-1", endpoint="/v1/responses", completion_window="24h"
        ),
        "batches of a name": lambda: client.batches.retrieve("batch_1"),
        "files": lambda: client.files.create(
            file=(f"{CANARY}.txt", CANARY.encode() * 500_000), purpose="user_data"
        ),
        "files of a list": lambda: client.files.list(),
        "files in parts": lambda: client.uploads.create(
            bytes=1, filename=CANARY, mime_type="text/plain", purpose="user_data"
        ),
        "audio": lambda: client.audio.transcriptions.create(model="whisper-1", file=sound),
        "audio of a text": lambda: client.audio.speech.create(
            model="tts-1", voice="alloy", input=CANARY
        ),
        "images": lambda: client.images.generate(prompt=CANARY),
        "fine-tuning": lambda: client.fine_tuning.jobs.create(model="m", training_file="file-1"),
        "vector stores": lambda: client.vector_stores.create(name=CANARY),
        "assistants": lambda: client.post("/assistants", cast_to=object, body={"name": CANARY}),
        "realtime": lambda: client.post("/realtime/client_secrets", cast_to=object, body={}),
        "realtime of a session": lambda: client.post("/realtime/sessions", cast_to=object, body={}),
    }


@pytest.mark.parametrize("name", each_call(None))
def test_the_sdk_is_told_what_to_do(client, upstream, name):
    with pytest.raises(openai.NotFoundError) as error:
        each_call(client)[name]()
    said = error.value.response.json()["error"]["message"]
    kind = name.partition(" of ")[0].partition(" in ")[0]
    assert said.startswith(f"textveil: the gateway does not serve {kind}")
    assert "Nothing was sent" in said
    assert CANARY not in said
    assert upstream.asked == []


def test_batches_of_anthropic(gateway, upstream):
    http = httpx2.Client(trust_env=False)
    base = gateway.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base, api_key="k", max_retries=0, http_client=http) as client:
        message = {"role": "user", "content": CANARY}
        body = {"model": "m", "max_tokens": 5, "messages": [message]}
        with pytest.raises(anthropic.NotFoundError, match="one by one") as error:
            client.messages.batches.create(requests=[{"custom_id": "a", "params": body}])
    assert error.value.body["error"]["type"] == "not_found_error"
    assert upstream.asked == []


@pytest.mark.parametrize("prefix", ["", "/v1", "/openai/v1"])
def test_websockets_and_invoke(gateway, upstream, prefix):
    base = gateway.removesuffix("/v1")
    upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    with httpx2.Client(trust_env=False) as http:
        made = http.get(f"{base}{prefix}/realtime?model=m", headers=upgrade)
        assert made.status_code == 404
        assert "transcribe" in made.json()["error"]["message"]
        if not prefix:
            made = http.post(f"{base}/model/a.b/invoke", json={"prompt": CANARY})
            assert made.headers["x-amzn-errortype"] == "ResourceNotFoundException"
            assert "use converse" in made.json()["message"]
        other = http.post(f"{base}{prefix}/of/{CANARY}", json={"prompt": CANARY})
    assert other.status_code == 404
    assert "no such route" in other.json()["error"]["message"]
    assert CANARY not in other.text
    assert upstream.asked == []


def test_a_served_route_is_not_refused():
    for operation in load_operations():
        path = operation.path.replace(":path", "").replace("{", "").replace("}", "")
        for place in (path, f"/v1{path}"):
            known = find_refused(place)
            assert known is None or not known.instead, operation.name
    for path in ("/openai/deployments/x/audio/speech", "/openai/files", "/openai/v1/files"):
        assert find_refused(path) is not None, path
    for path in ("/v1/filesystem", "/v1/audiobooks", "/v1/models/images", "/imagesx"):
        assert find_refused(path) is None, path


def test_each_says_what_to_do():
    for route in filter(lambda route: route.instead, REFUSED_ROUTES):
        refused = route.build_refusal()
        assert route.kind in refused.message
        assert len(refused.message) > len(route.kind) + 60
