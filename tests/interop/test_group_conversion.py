"""Consumers go from the classic to the consumer protocol and back, one at a time, while records flow."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from confluent_kafka import ConsumerGroupType
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from ..waiting import eventually
from .group_life import ALL, shared
from .members import Feeder, MemberProcess, Members, assert_at_least_once
from .servers import Server
from .topics import create_topic

NewTopic = Callable[..., str]
NewName = Callable[[], str]
QUICK_HEARTBEATS = {
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
}
LONGEST_PAUSE_S = 15.0
"""Of the whole group: a rebalance of eager members, and a busy machine."""


def is_listed(admin: AdminClient, group: str, kind: ConsumerGroupType) -> bool:
    """Whether there is this group, as one of this type."""
    listed = admin.list_consumer_groups().result(20).valid
    return [each.type for each in listed if each.group_id == group] == [kind]


def longest_pause_s(members: Members) -> float:
    """The longest time in which nobody read anything."""
    reads = sorted(event["at"] for member in members.all for event in member.told("read"))
    return float(max(after - before for before, after in pairwise(reads))) / 1e9


@pytest.mark.parametrize("own_server", [QUICK_HEARTBEATS], indirect=True, ids=["quick"])
@pytest.mark.parametrize(
    ("program", "static"),
    [
        ("librdkafka_member", False),
        ("librdkafka_member", True),
        pytest.param("java group-member", False, marks=pytest.mark.long),
        pytest.param("java group-member", True, marks=pytest.mark.long),
    ],
    ids=["librdkafka-dynamic", "librdkafka-static", "java-dynamic", "java-static"],
)
def test_a_rolling_upgrade_and_a_rolling_downgrade_lose_nothing(
    program: str, static: bool, own_server: Server, members: Members
) -> None:
    if program.startswith("java"):
        MAVEN.require()
    server, group = own_server, "group"
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    topic = create_topic(admin, "records", len(ALL))

    def start(protocol: str, slot: int) -> MemberProcess:
        options = {"instance": f"instance-{slot}"} if static else {}
        common = {"bootstrap": server.bootstrap, "group": group, "topic": topic, "session_timeout": 6_000}
        return members.start(program, protocol=protocol, strategy="range", **common, **options)

    def share(running: list[MemberProcess], kind: ConsumerGroupType) -> None:
        try:
            eventually(lambda: shared(*running), within=60, what="three share")
            eventually(lambda: is_listed(admin, group, kind), what=f"a {kind.name} group")
        except AssertionError as error:
            raise AssertionError(members.told_of({})) from error

    feeder = Feeder(server.bootstrap, topic, len(ALL))
    try:
        running = [start("classic", slot) for slot in range(3)]
        share(running, ConsumerGroupType.CLASSIC)
        for protocol in ("consumer", "classic"):
            for slot in range(3):
                running[slot].leave()
                running[slot] = start(protocol, slot)
                back = protocol == "classic" and slot == 2
                share(running, ConsumerGroupType.CLASSIC if back else ConsumerGroupType.CONSUMER)
    finally:
        ends = feeder.stop()
    try:
        eventually(lambda: members.committed() == ends, within=60, what="all is read and committed")
    except AssertionError as error:
        raise AssertionError(members.told_of(ends)) from error
    for member in running:
        member.leave()
    assert_at_least_once(members.all, ends)
    assert longest_pause_s(members) < LONGEST_PAUSE_S


def test_a_group_whose_assignor_keeps_data_of_its_own_stays_classic(
    server: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    """librdkafka's cooperative-sticky puts some into assignments, which the broker would lose. Kafka refuses, too."""
    common = {"bootstrap": server.bootstrap, "group": new_name(), "topic": new_topic(len(ALL))}
    classic: list[MemberProcess] = []
    for _ in range(2):  # in the second generation there is some
        classic.append(members.start("librdkafka_member", strategy="cooperative-sticky", **common))
        eventually(lambda: shared(*classic), within=60, what="they share")
    modern = members.start("librdkafka_member", protocol="consumer", **common)
    eventually(lambda: modern.told("error"), within=60, what="an error")
    assert "group id does not exist" in modern.told("error")[0]["text"]
    assert shared(*classic)
