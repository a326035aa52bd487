"""What if an instance were gone, or one came in a rack of its own: beside a broker with members in two zones."""

from __future__ import annotations

import asyncio

from kohort.client.admin import Admin
from kohort.client.streams_member import Role, StreamsMember
from kohort.testing import Broker
from tests.console.running import console
from tests.console.streams_members import instances, set_group
from tests.console.test_server import page_of

ZONES = [{"client_tags": {"zone": zone}, "process_id": f"in-{zone}-{number}"} for zone in "ab" for number in (1, 2)]
"""Two instances in each zone."""


def active(member: StreamsMember) -> set[str]:
    return {str(task) for task, role in member.tasks.items() if role is Role.ACTIVE}


def test_less_and_racks() -> None:
    async def whole(servers: str) -> None:
        async with Admin(servers) as admin:
            await admin.topics.create("orders", partitions=4)
        await set_group(servers, "app", num_standby_replicas=1, rack_aware_assignment_tags="zone")
        async with (
            instances(servers, "app", "orders", ZONES, partitions=4, standbys=1) as members,
            console(servers) as at,
        ):
            (gone,) = active(members[0])
            name = f"{members[0].member_id[:12]}…"
            page = page_of(await at.page("/group/placement", id="app", remove="in-a-1"))
            (move,) = [row for row in page.rows if len(row) == 4 and row[1] == name]
            others = {f"{each.member_id[:12]}…" for each in members[1:]}
            assert move[0] == f"0: {gone[2:]}" and move[2] in others
            (row,) = [row for row in page.rows if row[1:3] == ["in-a-1", "gone"]]
            assert row[0].startswith(name) and "zone a" in row[0], row

            page = page_of(await at.page("/group/placement", id="app", add="1", tags="zone=c", remove="in-a-1"))
            (move,) = [row for row in page.rows if len(row) == 4 and row[1] == name]
            assert move[:3] == [f"0: {gone[2:]}", name, "new-1"]
            (row,) = [row for row in page.rows if row[1:3] == ["new-1", "1"]]
            assert "zone c" in row[0], row

            for task in ("0_0", "0_3"):
                html = await at.page("/group/placement", id="app", task=task)
                assert "Racks: each copy is in a zone of its own." in html

    with Broker() as broker:
        asyncio.run(whole(broker.bootstrap_servers))
