"""The console over HTTP, beside a broker with groups of real clients."""

from __future__ import annotations

import asyncio
import json
import re
from html.parser import HTMLParser

import aiohttp
import pytest
from aiohttp import web

from kohort.client.admin import Admin
from kohort.client.cluster import Cluster
from kohort.client.config import ClientConfig
from kohort.client.consumer import Consumer
from kohort.client.membership.offset_requests import commit_request
from kohort.client.producer import Producer
from kohort.client.share_consumer import ShareConsumer
from kohort.client.types import GroupMetadata, OffsetAndMetadata, TopicPartition
from kohort.console import partition_lags
from kohort.console.group_page import MOST_ROWS
from kohort.protocol.messages.offset_commit import OffsetCommitResponse
from kohort.testing import Broker
from tests.client.administration.members import join_classic, join_streams
from tests.console.made_up import MadeUp
from tests.console.running import Console, console
from tests.work import counted

HTML = "<script>alert('1')</script>\"&<b>"
"""In names, keys, values and headers."""


async def fill(servers: str) -> None:
    async with Admin(servers) as admin, Producer(servers) as producer:
        await admin.topics.create("orders", partitions=3)
        for number in range(20):
            await producer.send("orders", b'{"n": %d}' % number, key=HTML.encode(), partition=number % 2)
        await (await producer.send("orders", b"\xff\0", partition=2, headers=[(HTML, HTML.encode())]))
        await producer.flush()
        await admin.group_offsets.alter("first", {TopicPartition("orders", 0): 0})  # makes the topic of offsets


class Page(HTMLParser):
    """A page's elements and texts, as a browser would have them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, str] = {}
        self._into: str | None = None
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        self._into = dict(attrs).get("data-text")

    def handle_endtag(self, tag: str) -> None:
        self._into = None
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] = (self.rows[-1][-1] + data).strip()
        if self._into:
            self.texts[self._into] = data

    def elements(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(html: str) -> Page:
    """A page, with no element but those of the console's own."""
    page = Page(html)
    assert [each.get("src") for each in page.elements("script")] == ["/static/console.js"]
    assert not page.elements("b")
    assert not [each for _, each in page.tags if any(name.startswith("on") or name == "style" for name in each)]
    return page


# Groups of every type


def test_a_classic_group(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_lags, "EVERY_S", 3_600.0)  # no line, however long it takes

    async def whole() -> None:
        member = await join_classic(servers, HTML, TopicPartition("orders", 0))
        async with Admin(servers) as admin, console(servers) as at:
            listed = page_of(await at.page("/groups", q="script"))
            assert [HTML, "Stable", "–", "–", "–", "0", "1", "classic"] in listed.rows
            page = page_of(await at.page("/group", id=HTML))
            assert (page.texts["state"], page.texts["members_count"], page.texts["lag"]) == ("Stable", "1", "–")
            assert [member, "kohort", "127.0.0.1", "–", "orders: 0"] in page.rows
            assert ["orders-0", "–", "10", "–", "–", "10", f"{member[:12]}…"] in page.rows
            await admin.groups.remove_members(HTML)
            await admin.group_offsets.alter(HTML, {TopicPartition("orders", 0): 4})
            page = page_of(await at.page("/group", id=HTML))
            assert (page.texts["state"], page.texts["lag"]) == ("Empty", "6")
            assert ["orders-0", "4", "10", "6", "–", "–", "–"] in page.rows

    asyncio.run(whole())


def test_a_consumer_group_whose_client_is_called_html(servers: str) -> None:
    async def whole() -> None:
        config = ClientConfig(bootstrap_servers=servers, client_id=HTML)
        async with (
            Consumer(config, group_id="readers", group_protocol="consumer", auto_offset_reset="earliest") as consumer,
            console(servers) as at,
        ):
            consumer.subscribe("orders")
            found = 0
            while found < 21:
                found += len(await consumer.poll())
            await consumer.commit()
            page = page_of(await at.page("/group", id="readers"))
            assert (page.texts["lag"], page.texts["trend"]) == ("0", "caught up")
            (member,) = [row for row in page.rows if row[1:2] == [HTML]]
            assert (member[2], member[4:]) == ("127.0.0.1", ["consumer", "orders: 0-2", "–"])

    asyncio.run(whole())


def test_a_streams_group_has_tasks_and_a_topology(servers: str) -> None:
    async def whole() -> None:
        member = await join_streams(servers, "app", "orders")
        async with console(servers) as at:
            page = page_of(await at.page("/group", id="app"))
            assert ["0_2", f"{member[:12]}…", "–", "–"] in page.rows
            assert ["0", "orders", "orders: 0/s written", "–", "app-store-changelog"] in page.rows
            assert (page.texts["rate topic orders"], page.texts.get("rate part 0", "")) == ("0/s written", "")
            assert len([each for each in page.elements("path") if each.get("class") == "arrow"]) == 1
            assert page.texts["topology_epoch"] == "0"
            assert "Warm-up" in [cell for row in page.rows for cell in row]

    asyncio.run(whole())


def test_a_share_group_shows_what_is_in_flight(servers: str) -> None:
    async def whole() -> None:
        async with Admin(servers) as admin:
            from kohort.client.administration.configs import ConfigResource, ResourceType

            group = ConfigResource(ResourceType.GROUP, "workers")
            await admin.configs.alter(group, set={"share.auto.offset.reset": "earliest"})
        async with ShareConsumer(servers, group_id="workers") as consumer, console(servers) as at:
            consumer.subscribe("orders")
            while not await consumer.poll():
                pass
            page = page_of(await at.page("/group", id="workers"))
            assert page.texts["members_count"] == "1"
            assert [row for row in page.rows if row[1:3] == ["acquired", "1"]], page.rows
            (holder,) = [row for row in page.rows if row[1:3] == ["21", "1"]]
            assert re.fullmatch(r"\d+ s", holder[3]), holder  # of 30
            assert [row for row in page.rows if row[:2] == ["1", "21"]], page.rows
            assert "no topic of it is told" in await at.page("/group", id="workers")

    asyncio.run(whole())


def test_a_group_that_is_not_there(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            assert "There is no group" in await at.page("/group", 404, id=HTML + "2")
            page_of(await at.page("/group", 404, id=HTML + "2"))
            assert "Did you mean &#39;orders&#39;?" in await at.page("/topic", 404, name="Order")
            assert "Did you mean &#39;first&#39;?" in await at.page("/group", 404, id="fist")
            assert "<h1>first</h1>" in await at.page("/groups/first")
            assert "<h1>orders</h1>" in await at.page("/topics/orders")
            assert "Did you mean &#39;first&#39;?" in await at.page("/groups/fist", 404)
            async with at.http.get("/groups/a%2Fb%0d/", allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, "/group?id=a/b%0D/")

    asyncio.run(whole())


# Updates


def test_an_open_page_is_told_what_changed_and_no_more(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_lags, "EVERY_S", 3_600.0)  # no line, however long it takes

    async def whole() -> None:
        async with Admin(servers) as admin, console(servers) as at:
            at_0, at_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
            await admin.group_offsets.alter("moving", {at_0: 2, at_1: 10})
            await at.watcher.look()
            async with (
                at.stream("/group/events", id="moving", type="classic") as page,
                at.stream("/groups/events", q="moving") as listed,
            ):
                await at.watcher.look()  # that of the page
                while "lag" not in page.view.texts:
                    await page.next()
                assert page.view.texts["lag"] == "8"
                assert listed.view.tables["groups"].rows["moving"][2].text == "8"
                await admin.group_offsets.alter("moving", {at_0: 7})
                await at.watcher.look()
                change = await page.next()
                while "lag" not in change.get("texts", {}):
                    change = await page.next()
                assert change["texts"]["lag"] == "3"
                assert list(change["tables"]["partitions"]) == ["rows"]
                assert list(change["tables"]["partitions"]["rows"]) == ["orders-0"]
                change = await listed.next()
                while "tables" not in change:
                    change = await listed.next()
                assert list(change["tables"]["groups"]["rows"]) == ["moving"]
                await admin.groups.delete("moving")
                await at.watcher.look()
                while not page.view.texts["problem"]:
                    await page.next()
                assert page.view.texts["problem"] == "The group is gone."
                while listed.view.tables["groups"].rows:
                    await listed.next()

    asyncio.run(whole())


def test_a_lag_that_falls_says_when_it_is_caught_up(servers: str) -> None:
    async def whole() -> None:
        async with Admin(servers) as admin, console(servers) as at:
            partition = TopicPartition("orders", 0)
            for offset in range(0, 10, 2):
                await admin.group_offsets.alter("falling", {partition: offset})
                await at.watcher.look()
            page = page_of(await at.page("/group", id="falling"))
            assert re.fullmatch(r"falling by .+, caught up in .+", page.texts["trend"])
            (line,) = page.elements("polyline")
            assert len((line["points"] or "").split()) >= 5

    asyncio.run(whole())


@pytest.mark.long
def test_ten_thousand_groups_of_a_broker_stay_quick() -> None:
    """The first page takes few calls for a group, each row is complete, and a look tells it only what changed."""

    async def whole(servers: str) -> None:
        async with Admin(servers) as admin:
            await admin.topics.create("t")
            partition = TopicPartition("t", 0)
            await admin.group_offsets.alter("g00000", {partition: 0})  # the coordinator's topic is there then
            await commit_for_groups(servers, [f"g{number:05}" for number in range(10_000)], partition)
            async with console(servers) as at:
                with counted() as work:
                    listed = page_of(await at.page("/groups", page="150"))
                assert work.calls < 400_000  # of broker, console and test
                assert listed.texts["count"] == "10,000 groups, page 150 of 200"
                assert ["g07450", "Empty", "0", "caught up", "less than 1 s", "0", "0", "classic"] in listed.rows
                async with at.stream("/groups/events", page="150") as stream:
                    await admin.group_offsets.alter("g07451", {partition: 1})
                    await admin.groups.delete("g07452")
                    await at.watcher.look()
                    change = await stream.next()
                    assert len(json.dumps(change)) < 3_000
                    assert list(change["tables"]["groups"]["rows"]) == ["g07500"]

    with Broker() as broker:
        asyncio.run(whole(broker.bootstrap_servers))


async def commit_for_groups(servers: str, names: list[str], partition: TopicPartition) -> None:
    """Commits an offset for each group at the only broker; the admin client would list all groups for each."""
    async with Cluster(servers) as cluster:
        connection = await cluster.any_connection()
        for name in names:
            request = commit_request({partition: OffsetAndMetadata(0)}, GroupMetadata(name, -1, ""), {})
            answer = await connection.ask(request, OffsetCommitResponse, version=8)
            assert answer.topics[0].partitions[0].error_code == 0


# Topics


def test_topics_and_their_records(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            listed = page_of(await at.page("/topics", q="ORD"))
            assert ["orders", "3", "1", "fine", "–", "–"] in listed.rows
            assert not any("__consumer_offsets" in row for row in page_of(await at.page("/topics")).rows)
            assert any("__consumer_offsets" in row for row in page_of(await at.page("/topics", internal="yes")).rows)
            page = page_of(await at.page("/topic", name="orders"))
            assert ["0", "1", "1", "1", "0", "10", "10", "–"] in page.rows
            assert ["cleanup.policy", "delete", "default"] in page.rows
            assert "there is no topic none" in await at.page("/topic", 404, name="none")
            assert "The cluster says" in await at.page("/topic", 404, name=HTML)
            page_of(await at.page("/topic", 404, name=HTML))

    asyncio.run(whole())


def test_records_are_shown_from_the_end_an_offset_and_a_time(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:

            async def offsets(**fields: str) -> list[str]:
                page = page_of(await at.page("/records", topic="orders", **fields))
                return [row[0] for row in page.rows[1:]]

            assert await offsets(partition="0", count="2") == ["0: 8", "0: 9"]
            assert await offsets(partition="0", **{"from": "offset", "offset": "3"}, count="2") == ["0: 3", "0: 4"]
            everything = await offsets(**{"from": "time", "time": "2000-01-01T00:00"})
            assert len(everything) == 21
            assert await offsets(**{"from": "time", "time": "2500-01-01T00:00"}) == []
            assert len(await offsets(count="5")) == 5

    asyncio.run(whole())


def test_records_that_are_too_large_for_a_page_are_left_out(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.console.record_reader.MOST_BYTES", 1)

    async def whole() -> None:
        async with console(servers) as at:
            assert "they are too large for a page" in await at.page("/records", topic="orders")

    asyncio.run(whole())


def test_keys_values_and_headers_are_text_and_no_part_of_the_page(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            page = page_of(await at.page("/records", topic="orders", partition="0", count="1"))
            assert page.rows[1][2:4] == [HTML, '{\n  "n": 18\n}']
            page = page_of(await at.page("/records", topic="orders", partition="2"))
            assert page.rows[1][2].startswith("null")
            assert "0000  ff 00" in page.rows[1][3]
            assert HTML in page.rows[1][4]

    asyncio.run(whole())


def test_parameters_that_make_no_sense_are_refused(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            assert "has no partition 7" in await at.page("/records", 400, topic="orders", partition="7")
            assert "is no time" in await at.page("/records", 400, topic="orders", **{"from": "time", "time": HTML})
            page_of(await at.page("/records", 400, topic="orders", **{"from": "time", "time": HTML}))

    asyncio.run(whole())


# Who may ask


def test_all_answers_say_what_a_browser_may_do(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            for path in ("/groups", "/topics", "/static/console.css", "/static/console.js", "/none", "/groups/events"):
                async with at.http.get(path) as answer:
                    policy = answer.headers["Content-Security-Policy"]
                    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
                    assert "unsafe" not in policy
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"
                    assert "Access-Control-Allow-Origin" not in answer.headers

    asyncio.run(whole())


@pytest.mark.parametrize(("host", "status"), [("localhost", 200), ("evil.example", 421), ("our.example:8090", 200)])
def test_a_name_of_somebody_else_is_refused(servers: str, host: str, status: int) -> None:
    async def whole() -> None:
        async with console(servers, names=["our.example"]) as at:
            for path in ("/groups", "/groups/events", "/static/console.js"):
                async with at.http.get(path, headers={"Host": host}) as answer:
                    assert answer.status == status

    asyncio.run(whole())


def test_a_page_from_elsewhere_may_lead_here_but_ask_for_nothing(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:

            async def status(site: str, mode: str) -> int:
                headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
                async with at.http.get("/groups", headers=headers) as answer:
                    return answer.status

            assert await status("cross-site", "no-cors") == 403
            assert await status("same-site", "cors") == 403
            assert await status("cross-site", "navigate") == 200
            assert await status("same-origin", "cors") == 200
            for origin, wanted in ((f"http://127.0.0.1:{at.port}", 200), ("http://evil.example", 403), ("null", 403)):
                async with at.http.get("/groups/events", headers={"Origin": origin}) as answer:
                    assert answer.status == wanted

    asyncio.run(whole())


def test_nothing_can_be_changed(servers: str) -> None:
    async def whole() -> None:
        async with console(servers) as at:
            for method, status in (("POST", 403), ("PUT", 405), ("DELETE", 405), ("PATCH", 405)):
                async with at.http.request(method, "/groups") as answer:
                    assert answer.status == status

    asyncio.run(whole())


def test_streams_are_bounded_and_end_with_the_console(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.console.server.MOST_STREAMS", 2)

    async def whole() -> None:
        async with console(servers) as at:
            async with at.stream("/groups/events"), at.stream("/groups/events"):
                await at.page("/groups/events", 503)
            await until_a_stream_is_free(at)
            async with at.stream("/groups/events") as open_page:
                pass
            assert open_page.changes

    asyncio.run(whole())


def test_a_browser_that_reads_nothing_is_hung_up_on(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the end of its stream would wait to be read, with what is in memory: beyond the number that there may be."""
    write, written = web.StreamResponse.write, []

    async def blocked(response: web.StreamResponse, data: bytes) -> None:
        written.append(data)
        await (write(response, data) if len(written) == 1 else asyncio.Event().wait())

    monkeypatch.setattr("kohort.console.server._WRITE_S", 0.2)
    monkeypatch.setattr(web.StreamResponse, "write", blocked)

    async def whole() -> None:
        made_up = MadeUp({"g": 1})
        async with console(servers, groups=made_up) as at, at.stream("/groups/events", q="g") as stream:
            made_up.lags["g"] = 2
            await at.watcher.look()
            with pytest.raises(aiohttp.ClientError):
                await stream.next()

    asyncio.run(whole())


async def until_a_stream_is_free(at: Console) -> None:
    """A stream ends when the server notices that nobody reads it."""
    for _ in range(1_000):
        async with at.http.get("/groups/events") as answer:
            if answer.status == 200:
                return
        await at.watcher.look()
    raise AssertionError("no stream has ended")


def test_a_cluster_that_is_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
            await admin.topics.create("t")
            async with console(broker.bootstrap_servers) as at, at.stream("/groups/events") as stream:
                from kohort.client.errors import ConnectionLostError

                async def lost() -> None:
                    raise ConnectionLostError("the connection is lost")

                monkeypatch.setattr(at.watcher._reader, "groups", lost)
                await at.watcher.look()
                await stream.next()
                assert "the connection is lost" in stream.view.texts["problem"]
                assert "the connection is lost" in page_of(await at.page("/groups")).texts["problem"]

    asyncio.run(whole())


def test_a_table_of_many_rows_shows_those_that_matter() -> None:
    """Of more partitions than a page takes, those with the largest lag."""
    from kohort.client.administration.group_offsets import PartitionLag
    from kohort.client.administration.group_types import GroupDescription, GroupType
    from kohort.client.types import Broker as Node
    from kohort.console.group_page import GroupReport, group_view
    from kohort.console.history import History
    from kohort.console.trend import trend

    lag = {TopicPartition("t", number): PartitionLag(0, number, number) for number in range(MOST_ROWS + 100)}
    group = GroupDescription(
        group_id="g", type=GroupType.CLASSIC, state="Empty", coordinator=Node(1, "here", 1), assignor="",
        protocol_type="", epoch=None, assignment_epoch=None, members=(),
    )  # fmt: skip
    view = group_view(GroupReport(group, lag), History(), trend([]))
    assert len(view.tables["partitions"].rows) == MOST_ROWS
    assert "t-99" not in view.tables["partitions"].rows
    assert (
        view.texts["partitions_note"]
        == "The 500 with the largest lag of 600 partitions. Drawn are the 20 that lag most."
    )
