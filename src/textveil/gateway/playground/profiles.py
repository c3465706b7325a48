"""Choices of a page: profiles and levels, with their privatizers.

In: a gateway, and its options. Out: names with explanations; a privatizer for each choice.
Not here: the effect of profiles and levels (`config`, `protect`).
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from textveil.config import Config, describe_profiles, resolve
from textveil.errors import InputError
from textveil.gateway.gateway import Gateway
from textveil.pipeline import Privatizer

Level = Literal["identifiers", "personal", "names"]

LEVEL_MEANINGS: dict[Level, str] = {
    "identifiers": "only identifiers with a fixed form: numbers, addresses, keys",
    "personal": (
        "also names of private persons, and places and organizations that show where they live or "
        "work"
    ),
    "names": "every name, including public ones",
}
"""Levels, with what counts as private under each."""

GATEWAY_PROFILE = "gateway"
"""Name of the gateway's options if no packaged profile has them."""

MAX_LOADED = 16
"""Maximal number of choices that stay loaded."""


class ProfileChoice(NamedTuple):
    """Profile that a page can choose.

    Args:
        title: its name on the page.
        about: its explanation.
        config: its options.
    """

    title: str
    about: str
    config: Config


class ProfileChoices:
    """Profiles of a page: the gateway's options first, then packaged profiles.

    Profiles of papers are left out.

    Args:
        gateway: the gateway of the page.
        config: the options of the gateway.

    Attributes:
        gateway: the gateway of the page.
    """

    def __init__(self, gateway: Gateway, config: Config) -> None:
        abouts = {
            name: about
            for name, about in describe_profiles().items()
            if not name.startswith("paper-")
        }
        packaged = {
            name: ProfileChoice(name, about, resolve(profile=name))
            for name, about in abouts.items()
        }
        own_name = next(
            (name for name, choice in packaged.items() if choice.config == config), GATEWAY_PROFILE
        )
        own_choice = ProfileChoice(
            "this gateway", "the options under which this gateway sends requests", config
        )
        if own_name in packaged:
            own_choice = ProfileChoice(f"{own_name} (this gateway)", abouts[own_name], config)
        self._choices = {own_name: own_choice} | {
            name: choice for name, choice in packaged.items() if name != own_name
        }
        self.gateway, self._config = gateway, config
        self._cached_load = lru_cache(MAX_LOADED)(self._load)

    def list_profiles(self) -> list[dict[str, Any]]:
        """Lists the profiles in order, as JSON.

        `looks` is true if levels mean something under the profile.
        """
        return [
            {"name": name, "title": choice.title, "about": choice.about}
            | {"level": choice.config.protect.level, "looks": _can_find(choice.config)}
            for name, choice in self._choices.items()
        ]

    def load(self, profile: str, level: Level) -> tuple[Config, Privatizer]:
        """Returns the options of a profile and level, and their privatizer.

        Raises:
            InputError: there is no such profile.
        """
        if profile not in self._choices:
            raise InputError("this gateway does not offer this profile: reload the page")
        return self._cached_load(profile, level)

    def _load(self, profile: str, level: Level) -> tuple[Config, Privatizer]:
        config = self._choices[profile].config
        if _can_find(config) and config.protect.level != level:
            config = replace(config, protect=replace(config.protect, level=level))
        is_own = config is self._config
        return config, self.gateway.privatizer if is_own else Privatizer.from_config(config)


def _can_find(config: Config) -> bool:
    """True if the options look for anything to hide."""
    return bool(config.protect.detectors or config.protect.always or config.protect.always_matching)
