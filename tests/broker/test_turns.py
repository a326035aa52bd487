"""What takes longer than a turn of the event loop lets others in between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import pytest

from kohort.broker.turns import LEAST_SECONDS, TURN_SECONDS, Line, Turns


def works(turns: Turns, done: list[str], *names: str, slices: int) -> None:
    """Adds works of so many slices, which note each of them."""

    def work(name: str, until: float) -> bool:
        done.append(name)
        return done.count(name) == slices

    for name in names:
        turns.add(partial(work, name))


def test_works_take_turns_and_what_arrives_comes_between() -> None:
    done: list[str] = []

    async def main() -> None:
        turns = Turns()
        works(turns, done, "a", "b", slices=3)
        while len(turns):
            await asyncio.sleep(0)
            done.append("other")

    asyncio.run(main())
    assert [name for name in done if name != "other"] == ["a", "b"] * 3
    assert all("other" in done[at : at + 2] for at in range(len(done) - 1)), done


def test_a_work_that_fails_ends_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def broken(until: float) -> bool:
        raise RuntimeError("broken")

    async def main() -> None:
        turns = Turns()
        turns.add(broken)
        works(turns, done, "a", slices=2)
        while len(turns):
            await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert done == ["a", "a"]
    assert "broken" in caplog.text


def test_closed_turns_give_none() -> None:
    done: list[str] = []

    async def main() -> None:
        turns = Turns()
        works(turns, done, "a", slices=2)
        turns.close()
        works(turns, done, "b", slices=2)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not len(turns)

    asyncio.run(main())
    assert not done


def test_connections_share_a_turn_of_the_loop() -> None:
    """So that a hundred with a few ms of work each, which arrive at once, don't make the next wait for all of it."""
    left: list[float] = []

    async def main() -> None:
        turns = Turns()
        for _ in range(3):
            left.append(turns.left)
            turns.used(TURN_SECONDS * 0.6)
        left.append(turns.left)
        await asyncio.sleep(0)
        left.append(turns.left)

    asyncio.run(main())
    assert left == [TURN_SECONDS, pytest.approx(TURN_SECONDS * 0.4), LEAST_SECONDS, LEAST_SECONDS, TURN_SECONDS]


def test_a_line_lets_in_so_many_and_keeps_the_order() -> None:
    line, inside = Line(2), list[str]()
    begins: dict[str, Callable[[], None]] = {name: partial(inside.append, name) for name in "abcde"}
    for begin in begins.values():
        line.enter(begin)
    assert inside == ["a", "b"]
    line.withdraw(begins["d"])
    line.withdraw(begins["a"])  # which isn't in line any more
    line.leave()
    assert inside == ["a", "b", "c"]
    line.leave()
    line.leave()
    line.leave()
    assert inside == ["a", "b", "c", "e"]
    line.enter(begins["d"])
    line.enter(begins["a"])
    line.enter(begins["b"])
    assert inside == ["a", "b", "c", "e", "d", "a"]
