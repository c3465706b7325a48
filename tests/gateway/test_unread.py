"""Requests that once passed something unread, each with the least that shows it."""

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving, serving_upstream

from textveil import Privatizer
from textveil.gateway import Gateway, Policy
from textveil.gateway.policy.policy import PolicyRule
from textveil.gateway.request.parsing import list_models

NAME, CITY, MAIL = "Zoe Quillimar", "Kraków", "zoe.quillimar@example.org"
CARD = "4111<>1111<>1111<>1111"


@pytest.fixture(scope="module")
def hiding():
    return Privatizer.from_profile("prompt")


@pytest.fixture
def upstream():
    with serving_upstream(lambda _: answer_of({"content": "ok"})) as made:
        yield made


def post(url, body, path="chat/completions", **headers):
    with httpx2.Client(trust_env=False, timeout=60) as http:
        return http.post(f"{url}/{path}", json=body, headers=headers)


def body(**more):
    return {"model": "m", "messages": [{"role": "user", "content": "hello"}], **more}


def test_a_chat_template_is_a_text(hiding, upstream):
    template = f"You talk with {NAME} ({MAIL}), who lives in {CITY}. {{{{ messages }}}}"
    policy = Policy(schemas="pass")
    with serving(Gateway(privatizer=hiding, upstream=upstream.url, policy=policy)) as url:
        assert post(url, body(chat_template=template)).status_code == 200
        tag = {"begin": NAME, "content": {"type": "any_text"}, "end": "x"}
        assert post(url, body(structural_tag=tag)).status_code == 200
    for secret in (NAME, MAIL, CITY):
        assert not upstream.shows(secret)


@pytest.mark.parametrize(
    "site", ["linkedin.com/in/zoe-quillimar-1a2b3c", "facebook.com/zoe.quillimar.5"]
)
def test_the_page_of_a_person_is_no_domain(hiding, upstream, site):
    settings = {"search_settings": {"include_domains": ["example.org", site]}}
    with serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url:
        post(url, body(**settings))
    assert not upstream.shows(site)


def test_a_date_is_no_name(hiding, upstream):
    with serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url:
        post(url, body(search_parameters={"from_date": "Zoe-Quillimar"}))
    assert not upstream.shows("Quillimar")


@pytest.mark.parametrize(("name", "sent"), [(CARD, CARD), (f"{MAIL} (1)", "EMAIL-1 (1)")])
def test_the_name_of_a_document_is_sent_as_it_was_read(hiding, upstream, name, sent):
    """The API refuses some characters there: to replace them joins what stood apart, or hides it."""
    document = {"document": {"format": "txt", "name": name, "source": {"text": "x"}}}
    asked = {"messages": [{"role": "user", "content": [document, {"text": "y"}]}]}
    with serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url:
        post(url, asked, "model/m/converse")
    assert upstream.bodies[-1]["messages"][0]["content"][0]["document"]["name"] == sent


@pytest.mark.parametrize(
    "more",
    [
        {"fallbacks": [{"model": "strict"}]},
        {"models": ["strict"]},
        {"draft_model": "strict"},
        {"preset": "strict"},
        {"compound_custom": {"models": {"answering_model": "strict"}}},
        {"plugins": [{"id": "auto-router", "allowed_models": ["strict"]}]},
        {"generationConfig": {"routingConfig": {"manualMode": {"modelName": "strict"}}}},
    ],
)
def test_rules_hold_for_models_that_a_request_names_anywhere(hiding, upstream, more):
    policy = Policy(rules=(PolicyRule(models=("strict",), block=("EMAIL",)),))
    asked = body(**more) | {"messages": [{"role": "user", "content": f"Write to {MAIL}."}]}
    assert "strict" in list_models(asked)
    with serving(Gateway(privatizer=hiding, upstream=upstream.url, policy=policy)) as url:
        assert post(url, asked).status_code == 400
    assert upstream.asked == []


def test_words_of_a_text_are_no_models():
    asked = body(metadata={"model": "x"}, tools=[{"model": "y"}], input=[{"models": ["z"]}])
    assert list_models(asked) == ["m"]


def test_the_name_of_a_signer_is_no_account(hiding, upstream):
    """Nobody checks the signature, and the name of its key is no secret."""
    gateway = Gateway(privatizer=hiding, upstream=upstream.url)
    signed = {
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIAZOE/20260101/eu/bedrock/aws4_request"
    }
    accounts = [
        gateway.identify_caller(headers).account
        for headers in (signed, {}, {"authorization": "AKIAZOE"}, {"x-api-key": "AKIAZOE"})
    ]
    assert accounts[0] == accounts[1]
    assert accounts[0] not in accounts[2:]


def test_an_error_s_type_is_no_text(hiding, upstream):
    upstream.answer = lambda asked: (
        400,
        {},
        {"message": "x", "__type": "x", "type": "<PERSON_1>Exception"},
    )
    asked = {"messages": [{"role": "user", "content": [{"text": f"I am {NAME}."}]}]}
    with serving(Gateway(privatizer=hiding, upstream=upstream.url)) as url:
        made = post(url, asked, "model/m/converse")
    assert made.headers["x-amzn-errortype"] == "ValidationException"
