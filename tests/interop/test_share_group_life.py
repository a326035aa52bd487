"""Share groups of three that grow, shrink, crash and come back, and whose broker is killed, while records flow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kohort.client import Admin
from tests.tools import MAVEN

from ..waiting import eventually
from .members import Feeder, MemberProcess, Members, monotonic
from .servers import Server
from .share_judge import Member, judge
from .topics import create_topic

TOPIC, GROUP, PARTITIONS, LIMIT = "jobs", "workers", 3, 3
JAVA, LIBRDKAFKA, KOHORT = "java share-member", "librdkafka_share_member", "kohort_share_member"
FRANZ = "go share"
QUICK = {
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.num.partitions": "4",
}
pytestmark = [pytest.mark.long, pytest.mark.parametrize("own_server", [QUICK], indirect=True, ids=["quick"])]


@pytest.fixture
def server(own_server: Server) -> Iterator[Server]:
    """A server with a topic, which the group shares from its beginning."""
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})
    create_topic(admin, TOPIC, PARTITIONS)
    configs = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()]
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(20)
    yield own_server


def done(server: Server) -> bool:
    """Whether the group has done all records, says the broker."""

    async def ask() -> bool:
        async with Admin(server.bootstrap) as admin:
            lags = [each.lag for each in (await admin.group_offsets.lag(GROUP)).values()]
            assert len(lags) == PARTITIONS
            return lags == [0] * PARTITIONS

    return asyncio.run(ask())


def works(*members: MemberProcess) -> Callable[[], bool]:
    """Whether each of these has settled ten records more than now."""
    before = [len(member.told("settled")) for member in members]

    def more() -> bool:
        for member in members:
            assert member.process.poll() is None, f"a member has exited with {member.process.returncode}"
        return all(len(member.told("settled")) >= many + 10 for member, many in zip(members, before, strict=True))

    return more


@pytest.mark.parametrize(
    "programs",
    [[JAVA] * 3, [LIBRDKAFKA] * 3, [KOHORT] * 3, [FRANZ] * 3, [JAVA, LIBRDKAFKA, KOHORT], [FRANZ, KOHORT, JAVA]],
    ids=["java", "librdkafka", "kohort", "franz-go", "java-librdkafka-kohort", "franz-go-kohort-java"],
)
def test_each_record_is_done_once_or_used_up(programs: list[str], server: Server, members: Members) -> None:
    if JAVA in programs:
        MAVEN.require()

    def start(slot: int) -> MemberProcess:
        return members.start(programs[slot], bootstrap=server.bootstrap, group=GROUP, topic=TOPIC)

    crashes = []
    feeder = Feeder(server.bootstrap, TOPIC, PARTITIONS, backlog=3_000)
    try:
        a = start(0)
        eventually(works(a), within=60, what="one works")
        b, c = start(1), start(2)
        eventually(works(a, b, c), within=60, what="three work")
        b.leave()
        eventually(works(a, c), within=60, what="two work after one has left")
        c.kill()
        eventually(works(a), within=60, what="one works after one has crashed")
        b, c = start(1), start(2)
        eventually(works(a, b, c), within=60, what="three work again")
        crashes.append(monotonic())
        server.kill()
        server.restart()
        eventually(works(a, b, c), within=60, what="three work after the broker has crashed")
    finally:
        ends = feeder.stop()
    eventually(lambda: done(server), within=150, what="the group has done all records")
    for member in (a, b, c):
        member.leave()
    lives = [Member(each.events, each.started, None if each in (a, b, c) else each.ended) for each in members.all]
    found = judge(lives, crashes, ends, LIMIT)
    assert min(found.get(how, 0) for how in ("accepted", "rejected", "archived")) > 0, found
    # A crash leaves open what members had in hand: 20 records each, and what they had fetched ahead.
    assert found.get("open", 0) <= 200, found
