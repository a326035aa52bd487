"""What is looked at, and when open pages hear of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from kohort.console.watcher import Watcher
from kohort.testing import Broker
from tests.console.made_up import MadeUp
from tests.console.running import console
from tests.work import counted


def test_groups_on_open_pages_are_looked_at_each_time_and_the_others_in_turns() -> None:
    async def whole() -> None:
        made_up = MadeUp({f"g{number}": number for number in range(5)})
        watcher = Watcher(made_up, batch=2)
        with watcher.showing(lambda: ["g3"]):
            for _ in range(4):
                await watcher.look()
        await watcher.look()
        assert made_up.asked == [["g3", "g0"], ["g3", "g1"], ["g3", "g2"], ["g3", "g4"], ["g0", "g1"]]
        assert watcher.report("g1") is not None
        assert watcher.report("g3") is None  # nobody sees it any more

    asyncio.run(whole())


def test_who_waits_for_news_gets_it_with_the_next_look_or_in_time() -> None:
    async def whole() -> None:
        watcher = Watcher(MadeUp({"g": 1}))
        waiting = asyncio.create_task(watcher.news(watcher.version, 60))
        await asyncio.sleep(0)
        assert not waiting.done()
        await watcher.look()
        assert await waiting == watcher.version == 1
        assert await watcher.news(1, 0.001) == 1
        assert await watcher.news(0, 60) == 1

    asyncio.run(whole())


def test_a_look_that_fails_is_told_until_one_succeeds() -> None:
    async def whole() -> None:
        made_up = MadeUp({"g": 1})
        watcher = Watcher(made_up)
        await watcher.look()
        made_up.failing = True
        await watcher.look()
        assert "the connection is lost" in watcher.problem
        assert watcher.book.groups["g"].summary is not None  # what was seen is still shown
        assert watcher.version == 2
        made_up.failing = False
        await watcher.look()
        assert watcher.problem == ""

    asyncio.run(whole())


def test_a_broker_that_does_not_list_its_groups_takes_none_away() -> None:
    """The others' groups are looked at as always; that some are missing is told."""

    async def whole() -> None:
        made_up = MadeUp({"a": 1, "b": 2})
        watcher = Watcher(made_up)
        await watcher.look()
        made_up.lags = {"b": 3, "c": 4}
        made_up.silent = 2
        await watcher.look()
        assert "Not all brokers" in watcher.problem
        assert "the connection is lost" in watcher.problem
        assert sorted(watcher.book.groups) == ["a", "b", "c"]
        assert watcher.book.history("a").samples
        assert [each.summary and each.summary.lag for each in watcher.book.groups.values()] == [1, 3, 4]
        made_up.silent = None
        await watcher.look()
        assert (watcher.problem, sorted(watcher.book.groups)) == ("", ["b", "c"])

    asyncio.run(whole())


def test_no_error_at_all_ends_the_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        made_up = MadeUp({"g": 1})
        watcher = Watcher(made_up, every=0.001)
        running = asyncio.create_task(watcher.run())
        with monkeypatch.context() as broken:
            broken.setattr(made_up, "look", None)
            while not watcher.problem:
                await watcher.news(watcher.version, 60)
            assert "A failure of the console" in watcher.problem
        while watcher.problem:
            await watcher.news(watcher.version, 60)
        running.cancel()

    asyncio.run(whole())


def test_a_group_that_is_new_is_found_when_its_page_is_asked_for() -> None:
    async def whole() -> None:
        made_up = MadeUp({"g": 1})
        watcher = Watcher(made_up)
        await watcher.look()
        made_up.lags |= {"new": 7, "unreadable": None}
        await watcher.look_at("new")
        found = watcher.report("new")
        assert found is not None
        assert found.total == 7
        await watcher.look_at("unreadable", "none")
        assert watcher.report("unreadable") is None

    asyncio.run(whole())


def test_ten_thousand_groups_stay_quick() -> None:
    """Each page is complete and takes a few calls for a group; a look tells it only what changed."""

    async def whole(servers: str) -> None:
        # Who lags is further behind in time with each look: those of the page that is kept open don't.
        made_up = MadeUp({f"g{number:05}": number if number < 7_000 else 0 for number in range(10_000)})
        async with console(servers, groups=made_up) as at:
            await at.page("/groups")  # templates are read once
            for fields in ({}, {"page": "150"}, {"sort": "lag"}, {"q": "99"}):
                with counted() as work:
                    text = await at.page("/groups", **fields)
                assert work.calls < 100_000
                assert text.count("<tr ") == 50
            async with at.stream("/groups/events", page="150") as stream:
                await at.watcher.look()  # with the groups of that page
                made_up.lags["g07451"] = 5
                del made_up.lags["g07453"]
                await at.watcher.look()
                change = await stream.next()
                while "g07451" not in change.get("tables", {}).get("groups", {}).get("rows", {}):
                    change = await stream.next()
                assert set(change["tables"]["groups"]["rows"]) == {"g07451", "g07500"}
                assert change["texts"] == {"count": "9,999 groups, page 150 of 200"}
                assert len(json.dumps(change)) < 2_000

    with Broker() as broker:
        asyncio.run(whole(broker.bootstrap_servers))
