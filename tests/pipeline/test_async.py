"""The same calls in an event loop: it goes on meanwhile, and who is cancelled gets nothing that was not charged."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.detectors import Finds

from textveil import Privatizer, Protector, Session, SessionStore
from textveil.errors import InputError

CANARY = "zyxqorvian@example.org"


class Waits(Finds):
    """Finds addresses once it may."""

    def __init__(self):
        super().__init__(EMAIL=r"\S+@\S+\w")
        self.prepare, self.may, self.delay_check = threading.Event(), threading.Event(), 0

    def find(self, texts):
        self.delay_check += 1
        self.prepare.set()
        assert self.may.wait(30)
        return super().find(texts)


def made(detector):
    return Protector(protect={"detectors": [detector]}, names={"types": "none"})


def test_a_loop_goes_on_while_a_text_is_protected():
    detector, session = Waits(), Session()
    guard = made(detector)

    async def asked():
        task = asyncio.create_task(guard.aprotect(f"Ask {CANARY}", session))
        await asyncio.to_thread(detector.prepare.wait, 30)
        assert not task.done()
        detector.may.set()  # the loop is here, and not in the detector
        return await task

    assert asyncio.run(asked()).text == "Ask <EMAIL_1>"
    assert session.restore("<EMAIL_1>") == CANARY


def test_it_is_the_same_release():
    first, second = (Privatizer("noise", epsilon=70, seed=3) for _ in range(2))
    text = "Ingrid hid the money in Antwerp"
    assert asyncio.run(first.aprivatize(text)).text == second.privatize(text).text


def test_errors_come_as_they_are():
    with pytest.raises(InputError, match="valid Unicode"):
        asyncio.run(Privatizer("placeholder").aprivatize("\ud800"))


def test_what_was_begun_is_charged_when_nobody_waits_any_more(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTVEIL_KEYS", str(tmp_path / "keys"))
    with SessionStore(f"sqlite:///{tmp_path / 'veil.db'}") as store:
        session, privatizer = store.open("anna"), Privatizer("rankcape", epsilon=8)
        begun, may = threading.Event(), threading.Event()
        reserve = session.reserve

        def waiting(spends):
            begun.set()
            assert may.wait(30)
            reserve(spends)

        monkeypatch.setattr(session, "reserve", waiting)

        async def cancelled():
            task = asyncio.create_task(privatizer.aprivatize("Ingrid hid the money", session))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert store.ledger.accounts("anna") == [], (
                "the one who asked did not wait for the draw"
            )
            may.set()

        asyncio.run(cancelled())  # the loop ends when its threads have
        charged = [each.epsilon for each in store.ledger.accounts("anna")]
        assert charged
        assert all(each > 0 for each in charged)


def test_what_was_not_begun_is_never_looked_at():
    detector = Waits()
    guard = made(detector)

    async def cancelled():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        first = asyncio.create_task(guard.aprotect("first"))
        second = asyncio.create_task(guard.aprotect("second"))
        while not detector.prepare.is_set():
            await asyncio.sleep(0.01)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        detector.may.set()
        await first

    asyncio.run(cancelled())
    assert detector.delay_check == 1
