"""Standbys and warm-ups on a group's page: how far behind they are, and how much of their state is restored."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kohort.client.admin import Admin
from kohort.client.streams_member import Role, TaskId
from kohort.console.group_page import GroupReport, group_view
from kohort.console.history import History
from kohort.console.trend import trend
from kohort.testing import Broker
from tests.console.running import console
from tests.console.streams_members import instances, set_group
from tests.console.test_placement_words import described, member
from tests.console.test_server import page_of
from tests.waiting import until

TASK = TaskId("0", 0)
UNKNOWN = ["–", "–"]


@pytest.mark.parametrize("role", [Role.STANDBY, Role.WARMUP])
@pytest.mark.parametrize(
    ("offset", "end", "told", "to_restore"),
    [
        (35, 70, ["35", "50 %"], "35"),
        (0, 70, ["70", "0 %"], "70"),
        (69_999, 70_000, ["1", "99 %"], "1"),
        (70, 70, ["0", "100 %"], "0"),
        (80, 70, ["0", "100 %"], "0"),  # the end was seen before
        (0, 0, ["0", "100 %"], "0"),
        (-2, 70, ["0", "100 %"], "0"),  # Kafka Streams': at the end
        (-1, 70, UNKNOWN, "0"),
        (2**63 - 1, 70, UNKNOWN, "0"),
        (None, 70, UNKNOWN, "0"),
        (35, None, UNKNOWN, "0"),
        (None, None, UNKNOWN, "0"),
    ],
)
def test_how_far_a_copy_is(role: Role, offset: int | None, end: int | None, told: list[str], to_restore: str) -> None:
    one = member("copier", {TASK: role, TaskId("0", 1): Role.ACTIVE}, {})
    assert one.streams is not None
    offsets = {} if offset is None else {TASK: offset}
    ends = {} if end is None else {TASK: end}
    one = replace(one, streams=replace(one.streams, task_offsets=offsets, task_end_offsets=ends))
    view = group_view(GroupReport(described(one), {}), History(), trend([]))
    (row,) = view.tables["copies"].rows.values()
    assert [cell.text for cell in row] == ["0_0", "copier", role.value, *told]
    # A standby follows what is written: there is no end that it comes to.
    assert view.tables["members"].rows["copier"][-1].text == (to_restore if role is Role.WARMUP else "0")


def test_standbys_of_two_members_are_told_as_they_report() -> None:
    async def whole(servers: str) -> None:
        async with Admin(servers) as admin:
            await admin.topics.create("orders", partitions=2)
        await set_group(servers, "app", num_standby_replicas=1, num_warmup_replicas=0, task_offset_interval_ms=1)
        async with (
            instances(servers, "app", "orders", [{}, {}], partitions=2, standbys=1) as members,
            console(servers) as at,
        ):
            copies = {task: each for each in members for task, role in each.tasks.items() if role is Role.STANDBY}
            assert len(copies) == 2

            async def rows() -> list[list[str]]:
                await at.watcher.look()
                page = page_of(await at.page("/group", id="app"))
                return [row for row in page.rows if row[2:3] == ["standby"]]

            assert [[row[0], *row[3:]] for row in await rows()] == [["0_0", *UNKNOWN], ["0_1", *UNKNOWN]]
            half, done = copies[TASK], copies[TaskId("0", 1)]
            half.report_offsets({TASK: 50}, {TASK: 100})
            done.report_offsets({TaskId("0", 1): 100}, {TaskId("0", 1): 100})
            name = f"{half.member_id[:12]}…"

            async def told() -> bool:
                found = await rows()
                return found[0] == ["0_0", name, "standby", "50", "50 %"] and found[1][3:] == ["0", "100 %"]

            await until(told, "both reports are shown")

    with Broker() as broker:
        asyncio.run(whole(broker.bootstrap_servers))
