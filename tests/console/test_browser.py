"""The console's pages in a browser: they do what they should, and everybody can use them."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from kohort.client.admin import Admin
from kohort.client.administration.awaited_members import awaited_members
from kohort.client.administration.configs import ConfigResource, ResourceType
from kohort.client.consumer import Consumer
from kohort.client.producer import Producer
from kohort.client.share_consumer import ShareConsumer
from kohort.client.streams_member import Lost, Revoked, StreamsMember, Subtopology, Topology
from kohort.client.types import TopicPartition
from kohort.console import partition_lags
from kohort.console.audit import AuditLog
from kohort.console.server import Policy
from kohort.http_access import OPEN
from kohort.testing import Broker
from tests.client.administration.members import join_classic, join_streams
from tests.console.running import Console, console
from tests.console.test_store_pages import Answers, instance
from tests.interop.toolchains import BUILD_S, axe, playwright
from tests.tools import CHROMIUM

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_S)]

HTML = "<script>alert('1')</script>\"&<b>"
"""In names, keys and headers."""

PAGES = {
    "groups": "/groups",
    "filtered": "/groups?q=no+such+group",
    "classic": "/group?" + urlencode({"id": HTML}),
    "streams": "/group?id=app",
    "placement": "/group/placement?id=app&add=2&standbys=1",
    "task": "/group/placement?id=app&task=0_1",
    "topics": "/topics",
    "internal": "/topics?internal=yes",
    "new topic": "/change",
    "topic": "/topic?name=orders",
    "records": "/records?topic=orders",
    "search": "/records?topic=orders&field=n+%3D+3",
    "wire": "/wire",
    "message": "/wire/message?name=Fetch",
    "offsets": "/records?topic=__consumer_offsets",
    "missing": "/missing",
}
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
UP_TO_DATE = "Up to date"


class Tab:
    """A page in a browser, and what it complained about.

    Attributes:
        page: Playwright's.
        at: the console.
        admin, servers: of the cluster.
    """

    def __init__(self, page: Any, at: Console, admin: Admin, servers: str) -> None:
        self.page, self.at, self.admin, self.servers = page, at, admin, servers
        self.complaints: list[str] = []
        page.on("console", lambda message: self._console(message))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))

    def _console(self, message: Any) -> None:
        answered = any(status in message.text for status in ("401 (", "403 (", "404 ("))  # a page says why
        if message.type in ("error", "warning") and not answered:
            self.complaints.append(message.text)

    async def open(self, path: str) -> None:
        """Opens a page of the console, until it hears what changes."""
        await self.page.goto(f"http://127.0.0.1:{self.at.port}{path}")
        if await self.page.locator("body[data-events]").count():
            await self.page.get_by_text(UP_TO_DATE).wait_for()

    async def text(self, name: str) -> str:
        """One of the texts that change."""
        return str(await self.page.text_content(f"[data-text={name}]"))

    def owners(self, group_id: str) -> set[str | None]:
        """The static names of members that have tasks, as the console has seen them last."""
        report = self.at.watcher.report(group_id)
        members = () if report is None else report.group.members
        return {each.instance_id for each in members if each.streams is not None and each.streams.tasks}

    def waited(self, group_id: str) -> set[str | None]:
        """The static names of members that the group waits for, as the console has seen them last."""
        report = self.at.watcher.report(group_id)
        return set() if report is None else {each.instance_id for each in awaited_members(report.group)}

    async def becomes(self, name: str, text: str) -> None:
        """Waits for such a text."""
        await self.page.wait_for_function(
            "([name, text]) => document.querySelector(`[data-text=${name}]`).textContent === text", arg=[name, text]
        )


def in_browser(work: Callable[[Tab], Awaitable[None]], policy: Policy | None = None, **context: Any) -> None:
    """Runs a test with a page of a browser beside a console of a cluster with groups and records."""
    CHROMIUM.require()
    sys.path.append(str(playwright()))
    try:
        from playwright.async_api import async_playwright  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(playwright()))

    async def whole() -> None:
        async with (
            cluster() as (servers, admin),
            console(servers, stores=OPEN, policy=policy) as at,
            async_playwright() as driver,
        ):
            browser = await driver.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            try:
                page = await (await browser.new_context(**context)).new_page()
                tab = Tab(page, at, admin, servers)
                await work(tab)
                assert tab.complaints == []
            finally:
                await browser.close()

    asyncio.run(whole())


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[str, Admin]]:
    """A broker, where it is, and who administers it."""
    async with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        servers = broker.bootstrap_servers
        await admin.topics.create("orders", partitions=2)
        async with Producer(servers) as producer:
            for number in range(20):
                value = b'{"n": %d, "list": [1, 2, 3, 4, 5, 6, 7, 8, 9]}' % number
                await producer.send("orders", value, key=HTML.encode(), partition=number % 2)
            await (await producer.send("orders", b"\xff\0", partition=1, headers=[(HTML, HTML.encode())]))
        await join_classic(servers, HTML, P0)
        await join_streams(servers, "app", "orders")
        await admin.group_offsets.alter("billing", {P0: 1, P1: 10})
        yield servers, admin


def test_everybody_can_use_the_pages() -> None:
    """By axe-core's rules, with all details open; and no page is wider than the screen, be it a phone's."""

    async def work(tab: Tab) -> None:
        found = []
        for name, path in PAGES.items():
            await tab.open(path)
            found += await violations(tab, name)
        await tab.open("/wire")
        await tab.page.fill("textarea", "00 00 00 15 00 0c 00 04 00 00 00 05 00 01 62 00 06 67 72 6f 75 70 00 00 00")
        await tab.page.get_by_role("button", name="Take apart").click()
        await tab.page.locator("section.dump").first.wait_for()
        found += await violations(tab, "taken apart")
        found += await violations_of_groups(tab)
        assert found == []

    in_browser(work, Policy(write=True, audit=AuditLog(stream=io.StringIO())))


async def violations_of_groups(tab: Tab) -> list[Violation]:
    """Of pages of groups that have members as long as this lasts."""
    listed = {"stores": [{"name": HTML, "key": {"k": "string"}, "subtopology": "0", "partitions": 1, "here": []}]}
    rows = {"store": HTML, "rows": [{"key": HTML, "value": {"v": HTML}}], "next": "/stores/x?after=1"}
    answers: Answers = {"/stores": (200, listed), "/stores/s": (200, rows)}
    topology = Topology({"0": Subtopology(source_topics=["orders"])})
    await tab.admin.configs.alter(
        ConfigResource(ResourceType.GROUP, "workers"), set={"share.auto.offset.reset": "earliest"}
    )
    async with (
        instance(answers, []) as endpoint,
        StreamsMember(tab.servers, "stores", topology, user_endpoint=endpoint) as member,
        ShareConsumer(tab.servers, group_id="workers") as worker,
        Consumer(tab.servers, group_id="readers", group_protocol="consumer", auto_offset_reset="earliest") as reader,
    ):
        await anext(member)
        await tab.open("/group/stores?id=stores&store=s")
        await tab.page.get_by_role("link", name="Next").wait_for()
        found = await violations(tab, "stores")
        reader.subscribe("orders")
        async for _ in reader:
            break
        await tab.at.watcher.look()
        await tab.open("/group?id=readers")
        assert await tab.text("members_count") == "1"
        found += await violations(tab, "consumer")
        worker.subscribe("orders")
        while not await worker.poll():
            pass
        await tab.at.watcher.look()
        await tab.open("/group?id=workers")
        await tab.page.locator("[data-table=in_flight] td", has_text="acquired").first.wait_for()
        return found + await violations(tab, "share")


Violation = tuple[str, str, list[str]]
"""The page and how it was shown, the rule, and elements that break it."""


async def violations(tab: Tab, name: str) -> list[Violation]:
    """What isn't as it should be on the page that is open: on a wide screen and a phone's, light and dark."""
    await tab.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    session = await tab.page.context.new_cdp_session(tab.page)  # past the content security policy
    await session.send("Runtime.evaluate", {"expression": axe()})
    found: list[Violation] = []
    for width in (320, 1280):
        await tab.page.set_viewport_size({"width": width, "height": 740})
        if await tab.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append((f"{name}, {width}", "wider than the screen", []))
        for scheme, rules in (("dark", {"runOnly": ["color-contrast"]}), ("light", {})):  # nothing else is of colours
            await tab.page.emulate_media(color_scheme=scheme)
            against = (await tab.page.evaluate("rules => axe.run(rules)", rules))["violations"]
            nodes = {each["id"]: [node["html"][:200] for node in each["nodes"]] for each in against}
            found += [(f"{name}, {width}, {scheme}", rule, elements) for rule, elements in nodes.items()]
    return found


def test_a_page_that_is_open_shows_what_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_lags, "EVERY_S", 1.0)  # the line goes over 31 s: a browser may take its time

    async def work(tab: Tab) -> None:
        await tab.open("/group?id=billing")
        assert await tab.text("lag") == "10"
        await tab.admin.group_offsets.alter("billing", {P0: 4})
        await tab.at.watcher.look()
        await tab.becomes("lag", "7")
        row = tab.page.locator("[data-table=partitions] [data-key=orders-0]")
        assert (await row.inner_text()).split()[:4] == ["orders-0", "4", "10", "6"]
        while not await row.locator("svg.line").count():
            await tab.at.watcher.look()
            await asyncio.sleep(0.05)  # until there is a point more
        assert len((await row.locator("polyline").get_attribute("points")).split()) >= 2
        assert "-3 in " in await row.inner_text()
        assert len((await tab.page.get_attribute("polyline", "points")).split()) >= 2

        await tab.open("/groups?q=b")
        await tab.admin.group_offsets.alter(f"b{HTML}", {P0: 0})
        await tab.admin.groups.delete("billing")
        await tab.at.watcher.look()
        rows = tab.page.locator("[data-table=groups] tbody tr")
        await rows.filter(has_text=f"b{HTML}").wait_for()
        assert await rows.count() == 2
        await tab.page.get_by_role("link", name=f"b{HTML}").click()
        assert await tab.page.text_content("h1") == f"b{HTML}"

    in_browser(work)


def test_a_rebalance_is_seen_while_it_happens() -> None:
    """A member joins, the other takes its time to give up a task: who is waited for is seen, then what has moved."""
    topology = Topology({"0": Subtopology(source_topics=["orders"])})
    done = asyncio.Event()

    async def answer(member: StreamsMember) -> None:
        async for event in member:
            if isinstance(event, Revoked | Lost):
                await done.wait()
                member.closed(*event.tasks)

    async def work(tab: Tab) -> None:
        servers = tab.servers
        async with AsyncExitStack() as stack:
            stack.callback(done.set)

            async def join(name: str) -> None:
                member = await stack.enter_async_context(StreamsMember(servers, "moving", topology, instance_id=name))
                task = asyncio.create_task(answer(member))
                stack.callback(task.cancel)

            await join("first")
            while tab.owners("moving") != {"first"}:
                await tab.at.watcher.look()
            await tab.open("/group?id=moving")
            assert [await tab.text(f"'timeline owner {row}'") for row in (0, 1)] == ["first", "first"]
            await join("second")
            while not tab.waited("moving"):
                await tab.at.watcher.look()

            # The task is the first's still, and stays so until that has closed it.
            awaited = "waiting for first (has 1 task to give up); others wait, too: second (has tasks to come)"
            await tab.page.locator("[data-text=awaited]", has_text=awaited).wait_for()
            assert await tab.text("state") == "Reconciling"
            members = tab.page.locator("[data-table=members] tbody tr")
            assert await members.filter(has_text="waited for: has 1 task to give up").count() == 1
            assert await members.filter(has_text="waited for: has tasks to come").count() == 1
            assert [await tab.text(f"'timeline owner {row}'") for row in (0, 1)] == ["first", "first"]
            assert await tab.page.locator("[data-table=moves] tbody tr").count() == 0
            await tab.at.watcher.look()
            assert tab.owners("moving") == {"first"}

            done.set()
            while tab.owners("moving") != {"first", "second"} or tab.waited("moving"):
                await tab.at.watcher.look()
            await tab.page.locator("[data-table=moves] td", has_text="second").first.wait_for()
            await tab.page.locator("[data-table=events] td", has_text="Members came: second").first.wait_for()
            assert {await tab.text(f"'timeline owner {row}'") for row in (0, 1)} == {"first", "second"}
            assert await tab.page.get_attribute("[data-d='timeline active 1']", "d")
            assert await tab.text("'timeline name 1'") == "second"
            await tab.becomes("state", "Stable")
            assert not await tab.page.is_visible("[data-text=awaited]")

    in_browser(work)


def test_what_if_is_filled_in() -> None:
    async def work(tab: Tab) -> None:
        await tab.open("/group?id=app")
        await tab.page.get_by_role("link", name="Why tasks are where they are").click()
        await tab.page.get_by_label("Instances more").fill("1")
        await tab.page.get_by_label("Standbys of each task").fill("1")
        await tab.page.get_by_role("button", name="Show").click()
        assert await tab.page.text_content("#summary") == "After these changes, 1 task would move."
        assert await tab.page.get_by_label("Instances more").input_value() == "1"
        await tab.page.get_by_role("link", name="0_1").click()
        await tab.page.get_by_role("heading", name="Why task 0_1 is where it is").wait_for()

    in_browser(work)


def test_updates_are_paused_by_keyboard() -> None:
    async def work(tab: Tab) -> None:
        await tab.open("/group?id=billing")
        await tab.page.focus("#pause")
        await tab.page.keyboard.press("Enter")
        await tab.page.get_by_text("Paused").wait_for()
        await tab.admin.group_offsets.alter("billing", {P0: 4})
        await tab.at.watcher.look()
        assert await tab.text("lag") == "10"
        await tab.page.keyboard.press("Enter")
        await tab.becomes("lag", "7")

    in_browser(work)


def test_the_focus_stays_where_it_is_while_rows_move() -> None:
    async def work(tab: Tab) -> None:
        await tab.open("/groups?sort=lag")
        link = tab.page.get_by_role("link", name="billing")
        await link.focus()
        await tab.admin.group_offsets.alter("largest", {P0: 0, P1: 0})
        await tab.at.watcher.look()
        await tab.page.get_by_role("link", name="largest").wait_for()
        assert await link.evaluate("each => each === document.activeElement")

    in_browser(work)


def test_pages_work_without_scripts() -> None:
    async def work(tab: Tab) -> None:
        await tab.page.goto(f"http://127.0.0.1:{tab.at.port}/groups")
        await tab.page.get_by_label("Name has").fill("bill")
        await tab.page.get_by_role("button", name="Show").click()
        await tab.page.get_by_role("link", name="billing").click()
        assert await tab.text("lag") == "10"
        assert not await tab.page.is_visible("#live")

    in_browser(work, java_script_enabled=False)
