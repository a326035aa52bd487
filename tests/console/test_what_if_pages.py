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
            active_moves = [row for row in page.rows if row[1:2] == [f"{name}, zone=a"] and row[0].startswith("0:")]
            assert [row[0] for row in active_moves] == [f"0: {gone[2:]}"], page.rows
            assert active_moves[0][2] not in ("", "–", name)

            page = page_of(await at.page("/group/placement", id="app", add="1", tags="zone=c", remove="in-a-1"))
            moved = {row[0]: row[2] for row in page.rows if row[2:3] == ["new-1, zone=c"]}
            assert f"0: {gone[2:]}" in moved, page.rows

            for task in ("0_0", "0_3"):
                html = await at.page("/group/placement", id="app", task=task)
                assert "Racks: each copy is in a zone of its own." in html

    with Broker() as broker:
        asyncio.run(whole(broker.bootstrap_servers))
