"""Fields of vendors beside OpenAI's: settings pass unaltered and uncounted, texts are hidden, answers restored."""

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.gateway.servers import answer_of, serving, serving_upstream, stream_of
from tests.gateway.test_gateway import environment  # noqa: F401

from textveil import Privatizer
from textveil.gateway import Gateway
from textveil.gateway.protocols import chat, registry
from textveil.gateway.protocols.field_rules import LeafRule

CANARY = "Blorvequine"

SETTINGS: dict[str, dict[str, Any]] = {
    "OpenRouter": {
        "models": ["openai/gpt-5", "anthropic/claude-opus-5:online"],
        "preset": "our-support",
        "route": "fallback",
        "transforms": ["middle-out"],
        "usage": {"include": True},
        "plugins": [
            {"id": "web", "enabled": True, "engine": "exa", "max_results": 3},
            {"id": "file-parser", "pdf": {"engine": "mistral-ocr"}},
            {"id": "auto-router", "allowed_models": ["anthropic/*"]},
        ],
        "provider": {
            "order": ["anthropic"],
            "sort": {"by": "throughput", "partition": "none"},
            "max_price": {"prompt": 1.5, "completion": "2.25"},
            "preferred_min_throughput": {"p90": 50},
            "data_collection": "deny",
            "zdr": True,
        },
        "reasoning": {"effort": "high", "summary": "auto", "exclude": False},
    },
    "vLLM": {
        "chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "low"},
        "mm_processor_kwargs": {"min_pixels": 784, "max_pixels": 1003520},
        "media_io_kwargs": {"video": {"num_frames": 40}},
        "structured_outputs": {"choice": ["yes", "no"]},
        "guided_choice": ["yes", "no"],
        "guided_decoding_backend": "xgrammar",
        "min_tokens": 3,
        "top_k": 20,
        "repetition_penalty": 1.1,
        "thinking_token_budget": 100,
    },
    "Groq": {
        "search_settings": {"include_domains": ["example.org"], "country": "germany"},
        "service_tier": "flex",
        "reasoning_format": "parsed",
        "citation_options": "enabled",
        "disable_tool_validation": True,
        "compound_custom": {
            "models": {"answering_model": "openai/gpt-oss-120b"},
            "tools": {"enabled_tools": ["web_search"]},
        },
    },
    "xAI": {
        "deferred": False,
        "search_parameters": {
            "mode": "on",
            "max_search_results": 10,
            "return_citations": True,
            "from_date": "2026-01-31",
            "sources": [
                {"type": "web", "country": "DE", "allowed_websites": ["example.org"]},
                {"type": "x", "post_view_count": 1000},
            ],
        },
    },
    "Qwen": {
        "enable_search": True,
        "enable_thinking": True,
        "thinking_budget": 500,
        "search_options": {"forced_search": True, "search_strategy": "max"},
        "translation_options": {"source_lang": "auto", "target_lang": "English"},
    },
    "LM Studio": {"ttl": 300, "draft_model": "qwen3-0.6b"},
    "others": {
        "num_retries": 2,
        "guardrails": ["pii-masking"],
        "extra_body": {"google": {"thinking_config": {"thinking_budget": 100}}},
    },
}

TEXTS: dict[str, dict[str, Any]] = {
    "OpenRouter": {"plugins": [{"id": "web", "search_prompt": f"of {CANARY}"}]},
    "vLLM": {
        "documents": [{"title": CANARY, "text": f"of {CANARY}", "id": f"{CANARY}.pdf"}],
        "bad_words": [CANARY],
        "request_id": CANARY,
        "chat_template_kwargs": {"documents": [{"text": CANARY}], "more": CANARY},
    },
    "Groq": {"documents": [{"source": {"type": "json", "data": {"of": [CANARY]}}}]},
    "xAI": {
        "search_parameters": {
            "sources": [
                {"type": "x", "included_x_handles": [CANARY]},
                {"type": "rss", "links": [f"https://example.org/{CANARY}"]},
            ]
        }
    },
    "Qwen": {
        "translation_options": {"domains": CANARY, "terms": [{"source": CANARY, "target": CANARY}]}
    },
    "others": {"tags": [f"of {CANARY}"], "chat_id": CANARY},
}

ANSWERS: dict[str, Any] = {
    "choices": [
        {
            "native_finish_reason": "stop",
            "stop_reason": "<WORD_1>",
            "token_ids": [1],
            "message": {"executed_tools": [{"output": "<WORD_1>"}], "images": []},
        }
    ],
    "citations": ["<WORD_1>"],
    "provider": "Groq",
    "x_groq": {"id": "req_1"},
    "usage_breakdown": {"models": []},
    "stats": {"tokens_per_second": 5.5},
    "prompt_token_ids": [1],
}


@pytest.fixture(scope="module")
def upstream():
    with serving_upstream() as server:
        yield server


def ask(upstream, privatizer, body, answer=None):
    """The body that is sent, the answer, and the fields that were counted as unknown."""
    upstream.asked.clear()
    said = answer_of({"content": "yes"})
    upstream.answer = lambda asked: (
        stream_of([{"content": "yes"}]) if asked.body.get("stream") else answer or said
    )
    turns = [{"role": "user", "content": CANARY}]
    with (
        serving(Gateway(privatizer=privatizer, upstream=upstream.url)) as url,
        httpx2.Client(trust_env=False) as http,
    ):
        made = http.post(f"{url}/chat/completions", json={"model": "m", "messages": turns, **body})
    assert made.status_code == 200, made.text
    (sent,) = upstream.bodies
    return sent, made.json(), made.headers.get("textveil-unknown", "")


@pytest.fixture(scope="module")
def privatizer(small_table):
    return Privatizer("placeholder", table=small_table)


@pytest.mark.parametrize("vendor", SETTINGS)
def test_settings_pass_unaltered_and_uncounted(vendor, upstream, privatizer):
    sent, _, unknown = ask(upstream, privatizer, SETTINGS[vendor])
    expected = {name: value for name, value in SETTINGS[vendor].items() if name != "deferred"}
    assert {name: sent[name] for name in expected} == expected
    assert unknown == ""


@pytest.mark.parametrize("vendor", TEXTS)
def test_texts_are_hidden(vendor, upstream, privatizer):
    sent, _, unknown = ask(upstream, privatizer, TEXTS[vendor])
    assert sent.keys() >= TEXTS[vendor].keys()
    assert not upstream.shows(CANARY)
    assert unknown in ("", "chat_template_kwargs.more=1")


def test_fields_of_answers(upstream, privatizer):
    message = {"role": "assistant", "content": "<WORD_1>"} | ANSWERS["choices"][0]["message"]
    answer = answer_of({}) | ANSWERS
    answer["choices"] = [{"index": 0, **ANSWERS["choices"][0], "message": message}]
    _, came, _ = ask(upstream, privatizer, {}, answer)
    (choice,) = came["choices"]
    assert choice["message"]["executed_tools"] == [{"output": CANARY}]
    assert choice["stop_reason"] == CANARY
    assert came["citations"] == [CANARY]
    assert came["stats"] == {"tokens_per_second": 5.5}
    assert "token_ids" not in choice
    assert "prompt_token_ids" not in came


def test_what_needs_another_route_is_refused(upstream, privatizer):
    with pytest.raises(AssertionError, match="deferred cannot be protected"):
        ask(upstream, privatizer, {"deferred": True})
    secret = {"compound_custom": {"tools": {"wolfram_settings": {"authorization": CANARY}}}}
    with pytest.raises(AssertionError, match="authorization cannot be protected") as error:
        ask(upstream, privatizer, secret)
    assert CANARY not in str(error.value)
    assert upstream.asked == []


def test_a_table_without_a_vendor_is_noticed(upstream, privatizer, monkeypatch):
    fields = dict(chat.CHAT_REQUEST.fields or {})
    del fields["search_parameters"]
    broken = replace(chat.CHAT, request=LeafRule(fields=fields))
    monkeypatch.setattr(registry, "CHAT", broken)
    _, _, unknown = ask(upstream, privatizer, SETTINGS["xAI"])
    assert unknown == "search_parameters=1"
    assert json.dumps(TEXTS).count(CANARY) > 10
