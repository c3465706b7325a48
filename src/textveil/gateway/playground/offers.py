"""Choices of a page: profiles and levels, with their privatizers.

In: a gateway, and its options. Out: names with explanations; a privatizer for each choice.
Not here: the effect of profiles and levels (`config`, `protect`).
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from textveil.config import Config, profiles, resolve
from textveil.errors import InputError
from textveil.gateway.gateway import Gateway
from textveil.pipeline import Privatizer

Level = Literal["identifiers", "personal", "names"]

LEVELS: dict[Level, str] = {
    "identifiers": "only what has a form: numbers, addresses, keys",
    "personal": (
        "also names of private persons, and the places and organizations that tell where they live "
        "or work"
    ),
    "names": "every name, public ones too",
}
"""Levels, with what counts as private under each."""

OWN = "gateway"
"""Name of the gateway's options if no packaged profile has them."""

LOADED = 16
"""Maximal number of choices that stay loaded."""


class Offer(NamedTuple):
    """Profile that a page can choose.

    Args:
        title: its name on the page.
        about: its explanation.
        config: its options.
    """

    title: str
    about: str
    config: Config


class Offers:
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
            name: about for name, about in profiles().items() if not name.startswith("paper-")
        }
        packaged = {
            name: Offer(name, about, resolve(profile=name)) for name, about in abouts.items()
        }
        name_of_own = next((name for name, each in packaged.items() if each.config == config), OWN)
        mine = Offer("this gateway", "the options that this gateway releases with", config)
        if name_of_own in packaged:
            mine = Offer(f"{name_of_own} (this gateway)", abouts[name_of_own], config)
        self._offers = {name_of_own: mine} | {
            name: each for name, each in packaged.items() if name != name_of_own
        }
        self.gateway, self._config = gateway, config
        self._using = lru_cache(LOADED)(self._load)

    def to_json(self) -> list[dict[str, Any]]:
        """Lists the profiles in order, as JSON.

        `looks` is true if levels mean something under the profile.
        """
        return [
            {"name": name, "title": each.title, "about": each.about}
            | {"level": each.config.protect.level, "looks": _can_find(each.config)}
            for name, each in self._offers.items()
        ]

    def using(self, profile: str, level: Level) -> tuple[Config, Privatizer]:
        """Returns the options of a profile and level, and their privatizer.

        Raises:
            InputError: there is no such profile.
        """
        if profile not in self._offers:
            raise InputError("there is no such profile here: reload the page")
        return self._using(profile, level)

    def _load(self, profile: str, level: Level) -> tuple[Config, Privatizer]:
        config = self._offers[profile].config
        if _can_find(config) and config.protect.level != level:
            config = replace(config, protect=replace(config.protect, level=level))
        is_own = config is self._config
        return config, self.gateway.privatizer if is_own else Privatizer.from_config(config)


def _can_find(config: Config) -> bool:
    """True if the options look for anything to hide."""
    return bool(config.protect.detectors or config.protect.always or config.protect.always_matching)
