"""Executors that are disturbed: workers that are killed at random moments, and parts that are drawn twice.

Processes of other engines import this, so it needs nothing but the library.
"""

import os
import random
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Dying:
    """Kills its own process at a random moment of some calls, the first time that each of them is made."""

    draw: Any
    folder: str

    def __call__(self, item: Any) -> Any:
        number = getattr(item, "number", 0)
        if type(item).__name__ == "Part" and number % 3 == 1 and self._first(number):
            wait = random.Random(number).uniform(0, 0.15)
            threading.Timer(wait, os.kill, (os.getpid(), signal.SIGKILL)).start()
            made = self.draw(item)
            threading.Event().wait()  # whoever is killed has not answered yet
            return made
        return self.draw(item)

    def _first(self, number: int) -> bool:
        try:
            (Path(self.folder) / f"died-{number}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True)
class Doubled:
    """Makes every call twice, and refuses two results."""

    draw: Any
    folder: str

    def __call__(self, item: Any) -> Any:
        first, second = self.draw(item), self.draw(item)
        assert first == second
        return second


@dataclass(frozen=True)
class Disturbed:
    """An executor whose calls are disturbed."""

    executor: Any
    how: Any
    folder: str

    def map(self, draw: Any, items: Any) -> Any:
        return self.executor.map(self.how(draw, self.folder), items)

    def share_key(self, key: Any) -> Any:
        return self.executor.share_key(key)
