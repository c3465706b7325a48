"""Requests that go on from each other take turns, and leave nothing."""

import asyncio
import gc

import pytest

from textveil.gateway.errors import RequestError
from textveil.gateway.serve.conversation_lock import ConversationLocks


def test_turns_are_in_order_and_others_do_not_wait():
    done = []

    async def ask(turns, account, name, number):
        async with turns.hold(account, name):
            await asyncio.sleep(0)
            done.append((account, name, number, "begins"))
            await asyncio.sleep(0.01)
            done.append((account, name, number, "ends"))

    async def all_of_them():
        turns = ConversationLocks(None)
        asked = [("a", "s"), ("a", "s"), ("b", "s"), ("a", None), ("a", None), ("a", ["s"])]
        await asyncio.gather(*(ask(turns, *each, i) for i, each in enumerate(asked)))
        return turns

    asyncio.run(all_of_them())
    assert [each[2:] for each in done if each[:2] == ("a", "s")] == [
        (0, "begins"),
        (0, "ends"),
        (1, "begins"),
        (1, "ends"),
    ]
    assert [each[3] for each in done[:5]] == ["begins"] * 5  # all but the second


def test_whoever_leaves_or_fails_leaves_the_turn_to_the_next_and_nothing_behind():
    async def waits():
        turns = ConversationLocks(None)
        first = turns.hold("a", "s")
        await first.__aenter__()

        async def ask():
            async with turns.hold("a", "s"):
                raise KeyError

        leaving, failing = (asyncio.create_task(ask()) for _ in range(2))
        await asyncio.sleep(0)
        leaving.cancel()
        await first.__aexit__(None, None, None)
        with pytest.raises(KeyError):
            await asyncio.wait_for(failing, 5)
        async with asyncio.timeout(5), turns.hold("a", "s"):
            pass
        del first, leaving, failing
        gc.collect()
        assert not turns._locks

    asyncio.run(waits())


def test_as_many_wait_for_their_turn_as_the_queue_has_places():
    async def take():
        turns, done, began = ConversationLocks(1), asyncio.Event(), []

        async def ask(name: object) -> None:
            async with turns.hold("key", name):
                began.append(name)
                await done.wait()

        asking = [asyncio.ensure_future(ask("a")), asyncio.ensure_future(ask("a"))]
        await asyncio.sleep(0.05)
        with pytest.raises(RequestError) as error:
            await ask("a")
        asking += [
            asyncio.ensure_future(ask("b")),
            asyncio.ensure_future(ask(None)),
        ]  # for which nobody waits
        await asyncio.sleep(0.05)
        first = list(began)
        asking[1].cancel()
        await asyncio.sleep(0.05)
        asking.append(asyncio.ensure_future(ask("a")))  # there is room again
        await asyncio.sleep(0.05)
        done.set()
        await asyncio.gather(*asking, return_exceptions=True)
        return error.value, first, began

    error, first, began = asyncio.run(take())
    assert (error.status, error.code, error.headers) == (503, "busy", {"Retry-After": "1"})
    assert first == ["a", "b", None]
    assert began == ["a", "b", None, "a"]
