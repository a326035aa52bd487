"""How topics grow: what is kept of it, which are looked at, and what an open page says."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.admin import Admin
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupType
from kohort.client.errors import ConnectionLostError
from kohort.client.producer import Producer
from kohort.client.types import Broker as Node
from kohort.client.types import PartitionInfo, TopicInfo, TopicPartition
from kohort.console.group_page import GroupReport, group_view
from kohort.console.growth import GrowthBook, growth_view, rates
from kohort.console.history import History, Sample
from kohort.console.topic_watcher import TopicWatcher
from kohort.console.trend import trend
from kohort.console.words import size
from kohort.protocol.share_in_flight import InFlight
from kohort.testing import Broker
from tests.console.running import console
from tests.console.test_server import page_of


def test_a_topic_that_grows_says_by_how_much() -> None:
    book = GrowthBook()
    for second in range(8):
        book.looked(second, {"t": 100 * second}, {"t": 2_048 * second}, {"t"}, due=["t"])
    texts = growth_view(book.of("t")).texts
    assert (texts["rate"], texts["ends"]) == ("100/s", "700")
    assert (texts["size"], texts["size_pace"]) == ("14.0 KiB", "grows by 2.0 KiB/s")
    assert texts["rate_text"] == "Within 6 s: from 100 to 100 records/s, at most 100."
    assert texts["size_text"] == "Within 7 s: from 0 bytes to 14.0 KiB, at most 14.0 KiB."
    assert len(texts["rate_points"].split()) == 7


def test_one_that_is_made_anew_has_no_rate_below_nothing() -> None:
    assert rates([Sample(0, 0), Sample(2, 10), Sample(3, 4)]) == [Sample(2, 5), Sample(3, 0)]
    assert growth_view(GrowthBook().of("t")).texts["rate"] == "–"


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 6), min_size=1),
    st.sets(st.sampled_from("abcdefg")),
    st.integers(1, 8),
    st.sets(st.sampled_from("abcdef")),
    st.integers(1, 6),
)
def test_all_topics_have_their_turn(
    topics: dict[str, int], wanted: set[str], most: int, silent: set[str], kept: int
) -> None:
    """Also where the ends of some aren't told, and where the growth of some isn't kept."""
    book = GrowthBook(kept)
    seen = set()
    for look in range(len(topics) + 1):
        due = book.due(topics, wanted, most)
        assert wanted & topics.keys() <= set(due)
        assert len(due) == len(set(due))
        more = [topics[name] for name in due if name not in wanted]
        assert sum(more) <= most or len(due) == 1
        seen |= set(due)
        book.looked(look, dict.fromkeys(set(due) - silent, 0), None, topics, due=due, wanted=wanted)
    if sum(topics[name] for name in wanted & topics.keys()) + max(topics.values()) <= most or not wanted:
        assert seen == topics.keys()


def test_what_is_kept_has_a_limit() -> None:
    book = GrowthBook(most=2)
    for at in range(6):
        book.looked(at, dict.fromkeys("abc", at), None, {"a", "b", "c"}, due=["a", "b", "c"])
    assert [len(book.of(name).ends.recent) for name in "abc"] == [6, 6, 0]
    book.looked(7, {"c": 1}, None, {"a", "b", "c"}, due=["c"], wanted={"c"})
    assert [bool(book.of(name).ends.recent) for name in "abc"] == [False, True, True]
    book.looked(9, {}, None, {"c"}, due=[])
    assert not book.of("b").ends.recent


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 bytes"), (1_023, "1,023 bytes"), (1_536, "1.5 KiB"), (2**40 * 250, "250 TiB")]
)
def test_sizes_are_read(value: int, text: str) -> None:
    assert size(value) == text


class MadeUpTopics:
    """Topics of one partition, with their ends.

    Attributes:
        asked: the names of each look.
    """

    def __init__(self, ends: dict[str, int | None]) -> None:
        self.all = ends
        self.asked: list[list[str]] = []
        self.failing = False

    async def topics(self) -> dict[str, TopicInfo]:
        if self.failing:
            raise ConnectionLostError("the connection is lost")
        partitions = {at: PartitionInfo(at, 1, 0, (1,), (1,)) for at in (0, 1)}
        return {name: TopicInfo(name, UUID(int=1), False, partitions) for name in self.all}

    async def ends(self, topics: Collection[TopicInfo]) -> dict[TopicPartition, int]:
        self.asked.append([topic.name for topic in topics])
        found = {TopicPartition(topic.name, 0): self.all[topic.name] for topic in topics}
        return {at: end for at, end in found.items() if end is not None} | {
            TopicPartition(topic.name, 1): 5 for topic in topics
        }

    async def sizes(self) -> dict[TopicPartition, int] | None:
        return {TopicPartition(name, 0): 10 for name in self.all}


def test_topics_on_open_pages_are_looked_at_each_time_and_the_others_in_turns() -> None:
    async def whole() -> None:
        reader = MadeUpTopics({"a": 1, "b": 2, "c": 3})
        watcher = TopicWatcher(reader, batch=4)
        with watcher.showing(lambda: ["c", "gone"]):
            for _ in range(3):
                await watcher.look()
            assert reader.asked == [["c", "a"], ["c", "b"], ["c", "a"]]
            assert watcher.gone == {"gone"}
            assert watcher.version == 3
        assert watcher.book.of("c").ends.recent[-1].value == 8
        assert watcher.book.of("c").sizes.recent[-1].value == 10
        reader.all["c"] = None  # its leader is gone: it stays as it was
        with watcher.showing(lambda: ["c"]):
            await watcher.look()
        assert watcher.book.of("c").ends.recent[-1].value == 8
        reader.failing = True
        await watcher.look()
        assert "the connection is lost" in watcher.problem

    asyncio.run(whole())


def test_topics_of_a_large_cluster_are_not_listed_for_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.console.topic_watcher.LARGE", 1)

    async def whole() -> None:
        reader = MadeUpTopics({"a": 1})
        watcher = TopicWatcher(reader)
        await watcher.look()
        reader.all["b"] = 2
        await watcher.look()
        assert reader.asked == [["a"], ["a"]]
        with watcher.showing(lambda: ["b"]):
            await watcher.look()
        assert reader.asked[-1] == ["b", "a"]
        assert watcher.gone == set()

    asyncio.run(whole())


def test_the_page_of_topics_has_the_list_of_a_moment_ago_of_a_large_cluster_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def whole() -> None:
        reader = MadeUpTopics({"a": 1})
        watcher = TopicWatcher(reader)
        assert set(await watcher.listed()) == {"a"}
        reader.all["b"] = 2
        assert set(await watcher.listed()) == {"a", "b"}  # of a small one it is asked for
        monkeypatch.setattr("kohort.console.topic_watcher.LARGE", 1)
        await watcher.listed()
        reader.all["c"] = 3
        assert set(await watcher.listed()) == {"a", "b"}
        watcher.changed()  # by the console itself
        assert set(await watcher.listed()) == {"a", "b", "c"}
        reader.all["d"] = 4
        monkeypatch.setattr("kohort.console.topic_watcher.PAGE_LIST_S", 0.0)
        assert set(await watcher.listed()) == {"a", "b", "c", "d"}

    asyncio.run(whole())


def test_what_is_changed_while_topics_are_listed_is_on_the_next_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.console.topic_watcher.LARGE", 1)

    async def whole() -> None:
        begun, told = asyncio.Event(), asyncio.Event()

        class Slow(MadeUpTopics):
            async def topics(self) -> dict[str, TopicInfo]:
                found = await super().topics()
                begun.set()
                await told.wait()
                return found

        reader = Slow({"a": 1})
        watcher = TopicWatcher(reader)
        listing = asyncio.create_task(watcher.listed())
        await begun.wait()
        reader.all["b"] = 2
        watcher.changed()
        told.set()
        assert set(await listing) == {"a"}
        assert set(await watcher.listed()) == {"a", "b"}
        reader.all["c"] = 3  # by another
        assert set(await watcher.listed()) == {"a", "b"}

    asyncio.run(whole())


def test_an_open_page_of_a_topic_is_told_of_its_growth() -> None:
    async def whole() -> None:
        async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
            servers = broker.bootstrap_servers
            await admin.topics.create("t")
            async with (
                Producer(servers) as producer,
                console(servers) as at,
                at.stream("/topic/events", name="t") as page,
            ):
                for _ in range(5):
                    await (await producer.send("t", b"x" * 1_000))
                    await at.growth.look()
                while page.view.texts["ends"] != "5":
                    await page.next()
                assert page.view.texts["rate"] != "–"
                assert "KiB" in page.view.texts["size"] or "bytes" in page.view.texts["size"]
                shown = page_of(await at.page("/topic", name="t"))
                assert (shown.texts["offsets"], shown.texts["ends"]) == ("5", "5")
                await (await producer.send("t", b"x"))
                shown = page_of(await at.page("/topic", name="t"))  # what isn't looked at yet counts in both
                assert (shown.texts["offsets"], shown.texts["ends"]) == ("6", "6")
                await at.growth.look()
                while page.view.texts["ends"] != "6":
                    await page.next()
                assert page.view.texts["offsets"] == "6"
                assert shown.rows[1][-1] != "–"
                await admin.topics.delete("t")
                await at.growth.look()
                while not page.view.texts["problem"]:
                    await page.next()
                assert page.view.texts["problem"] == "The topic is gone."

    asyncio.run(whole())


def test_locks_have_time_left_and_holders_have_records() -> None:
    in_flight = [
        InFlight(0, 4, "acquired", 2, "m", 12_000),
        InFlight(5, 5, "acquired", 3, "n", 9_000),
        InFlight(6, 9, "available", 2),
    ]
    group = GroupDescription(
        group_id="g", type=GroupType.SHARE, state="Stable", coordinator=Node(1, "here", 1), assignor="",
        protocol_type="", epoch=1, assignment_epoch=1, members=(),
    )  # fmt: skip
    report = GroupReport(group, {TopicPartition("t", 0): PartitionLag(0, 10, 10, in_flight=tuple(in_flight))})

    def rows(name: str, now: int) -> list[list[str]]:
        view = group_view(report, History(), trend([]), now_ms=now)
        return [[cell.text for cell in cells] for cells in view.tables[name].rows.values()]

    assert rows("holders", 10_000) == [["m", "5", "2", "2 s", "2 s"], ["n", "1", "3", "over", "over"]]
    assert rows("holders", 5_000) == [["m", "5", "2", "7 s", "7 s"], ["n", "1", "3", "4 s", "4 s"]]
    assert rows("deliveries", 0) == [["3", "1", "t: 0"], ["2", "9", "t: 0"]]
    assert [row[-1] for row in rows("in_flight", 10_000)] == ["2 s", "over", "–"]
