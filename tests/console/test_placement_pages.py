"""The pages of a streams group's placement, beside a broker with a group of a real member."""

from __future__ import annotations

import asyncio
from html import unescape

import pytest

from kohort.client.admin import Admin
from kohort.client.types import TopicPartition
from kohort.console import placing
from kohort.console.placing import NeedsSolverError, Placing
from kohort.coordinator.placement import Group, Member, SubtopologyTasks
from kohort.coordinator.placement.what_if import Add
from tests.client.administration.members import join_streams
from tests.console.running import console
from tests.console.test_server import HTML, page_of

GROUP = Group((SubtopologyTasks("count", 4, state_stores=1),), (Member("one"), Member("two")))


async def fill(servers: str) -> None:
    async with Admin(servers) as admin:
        await admin.topics.create("orders", partitions=3)
        await admin.group_offsets.alter(HTML, {TopicPartition("orders", 0): 0})


def test_where_tasks_are_why_and_what_if(servers: str) -> None:
    async def whole() -> None:
        member = await join_streams(servers, "app", "orders")
        name = f"{member[:12]}…"
        async with console(servers) as at:
            assert "/group/placement?id=app" in await at.page("/group", id="app")
            page = page_of(await at.page("/group/placement", id="app"))
            assert ["0_2", name, "–", "Nobody else is in the group.", "–", "–"] in page.rows
            assert ["tasks moved", "", "0 of 3"] in page.rows
            page = page_of(await at.page("/group/placement", id="app", add="2", standbys="1"))
            assert ["active tasks of a member", "3", "1"] in page.rows
            assert ["tasks moved", "", "2 of 3"] in page.rows
            assert [row[:3] for row in page.rows if row[2].startswith("new-")] == [
                ["0: 1", name, "new-1"],
                ["0: 2", name, "new-2"],
            ]
            assert {"name": "add", "value": "2"}.items() <= {
                key: value for each in page.elements("input") if each["name"] == "add" for key, value in each.items()
            }.items()
            assert "no member to run any" in await at.page("/group/placement", id="app", remove=member)
            page_of(await at.page("/group/placement", 400, id="app", remove=HTML))
            asked = await at.page("/group/placement", 400, id="app", remove=f"{member}x")
            assert f"Did you mean {member!r}?".lower() in unescape(asked).lower()
            assert "Did you mean 'app'?" in unescape(await at.page("/group/placement", 404, id="apo"))
            html = await at.page("/group/placement", id="app", task="0_1")
            assert "Balance: of the group&#39;s 3 tasks of subtopology 0" in html
            assert "Nobody else is in the group." in html

    asyncio.run(whole())


def test_what_has_no_placement(servers: str) -> None:
    async def whole() -> None:
        await join_streams(servers, "other", "orders")
        async with console(servers) as at:
            assert "is no streams group" in await at.page("/group/placement", 404, id=HTML)
            assert "There is no group" in await at.page("/group/placement", 404, id="none")
            page_of(await at.page("/group/placement", 404, id="other", task=f"{HTML}_9"))
            await at.page("/group/placement", 400, id="other", task="0")
            await at.page("/group/placement", 400, id="other", add="-1")

    asyncio.run(whole())


def test_a_solver_has_a_process_of_its_own_and_no_more_time_than_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        assigned, found = await Placing().compare(GROUP, [Add(2, 1, {})])
        assert assigned == "optimal"

        def hard(group: Group) -> None:
            raise NeedsSolverError

        monkeypatch.setattr(placing, "_quick", hard)
        assert await Placing().compare(GROUP, [Add(2, 1, {})]) == ("optimal", found)
        assigned, _ = await Placing(longest_s=0).compare(GROUP, [Add(2, 1, {})])
        assert assigned == "sticky"

    asyncio.run(whole())
