"""What the pipe function refuses, by settings that stand in for Open WebUI's; a real one is in test_openwebui.py."""

import asyncio
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from textveil.errors import ConfigError

MODELS: dict[str, dict[str, Any]] = {
    "gpt": {"owned_by": "openai"},
    "piped": {"owned_by": "openai", "pipeline": {"type": "pipe"}},
    "preset": {"owned_by": "openai", "info": {"base_model_id": "gpt"}},
    "over a pipeline": {"owned_by": "openai", "info": {"base_model_id": "piped"}},
    "over nothing": {"owned_by": "openai", "info": {"base_model_id": "gone"}},
    "round": {"info": {"base_model_id": "round"}},
    "function": {"pipe": {"type": "pipe"}},
    "arena": {"owned_by": "arena"},
}


@pytest.fixture
def asked(monkeypatch):
    """Asks whether a model is let through under some settings."""
    settings: dict[str, Any] = {}

    async def get(name: str) -> Any:
        return settings.get(name)

    parts: dict[str, dict[str, Any]] = {
        "env": {"ENABLE_FORWARD_USER_INFO_HEADERS": False},
        "models.config": {"Config": SimpleNamespace(get=get)},
        "models.users": {"Users": None},
        "utils.chat": {"generate_chat_completion": None},
    }
    for name in ("", "env", "models", "models.config", "models.users", "utils", "utils.chat"):
        module = ModuleType(f"open_webui.{name}".rstrip("."))
        module.__dict__.update(parts.get(name, {}))
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "textveil.integrations.openwebui", raising=False)
    from textveil.integrations.openwebui import TextveilPipe

    def ask(model: str, **given: Any) -> None:
        settings.clear()
        settings.update({name.replace("_", ".", 1): value for name, value in given.items()})
        pipe = TextveilPipe()
        pipe.valves.models = ", ".join(MODELS)
        state = SimpleNamespace(
            app=SimpleNamespace(state=SimpleNamespace(MODELS=MODELS)), state=SimpleNamespace()
        )
        asyncio.run(pipe._check_settings("textveil", model, state))

    yield ask
    sys.modules.pop("textveil.integrations.openwebui", None)


@pytest.mark.parametrize("model", ["gpt", "preset"])
def test_models_of_connections_and_what_is_made_from_them_are_let_through(
    asked, model: str
) -> None:
    asked(model, openai_api_configs={"0": {"headers": {"X-Team": "blue"}}}, ollama_api_configs=None)


@pytest.mark.parametrize("model", ["piped", "over a pipeline", "function", "arena"])
def test_a_model_that_is_told_more_is_refused_also_behind_another(asked, model: str) -> None:
    with pytest.raises(ConfigError, match="receive more"):
        asked(model)


def test_a_model_whose_origin_is_not_known_is_refused(asked) -> None:
    with pytest.raises(ConfigError, match="does not know"):
        asked("over nothing")


def test_a_model_made_from_itself_ends(asked) -> None:
    asked("round")


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_headers_that_tell_who_asks_are_refused(asked, kind: str) -> None:
    with pytest.raises(ConfigError, match="name of the user"):
        asked("gpt", **{f"{kind}_api_configs": {"1": {"headers": {"X-Who": "{{USER_EMAIL}}"}}}})
