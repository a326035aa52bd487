"""Groups of three that grow, shrink, crash and come back, while records flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient

from ..waiting import eventually
from .group_life import ALL, live, shared
from .members import MemberProcess, Members, assert_at_least_once, monotonic
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]

LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA = "librdkafka_member", "kafka_python_member", "aiokafka_member"
GROUPS = [
    pytest.param([LIBRDKAFKA] * 3, "range", False, id="librdkafka-eager"),
    pytest.param([LIBRDKAFKA] * 3, "cooperative-sticky", False, id="librdkafka-cooperative"),
    pytest.param([LIBRDKAFKA] * 3, "cooperative-sticky", True, id="librdkafka-cooperative-static"),
    pytest.param([LIBRDKAFKA] * 3, "roundrobin", True, id="librdkafka-eager-static"),
    pytest.param([KAFKA_PYTHON] * 3, "sticky", False, id="kafka-python-eager"),
    pytest.param([KAFKA_PYTHON] * 3, "cooperative-sticky", False, id="kafka-python-cooperative"),
    pytest.param([KAFKA_PYTHON] * 3, "range", True, id="kafka-python-static"),
    pytest.param([AIOKAFKA] * 3, "roundrobin", False, id="aiokafka-eager"),
    pytest.param([AIOKAFKA] * 3, "sticky", True, id="aiokafka-static"),
    pytest.param([LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA], "range", False, id="one-of-each"),
]


@pytest.mark.long
@pytest.mark.parametrize(("programs", "strategy", "static"), GROUPS)
def test_a_group_grows_shrinks_crashes_and_comes_back(
    programs: list[str],
    strategy: str,
    static: bool,
    server: Server,
    members: Members,
    new_topic: NewTopic,
    new_name: NewName,
) -> None:
    topic, group = new_topic(len(ALL)), new_name()

    def start(slot: int) -> MemberProcess:
        options: dict[str, Any] = {"instance": f"{group}-{slot}"} if static else {}
        common = {"bootstrap": server.bootstrap, "group": group, "topic": topic, "strategy": strategy}
        return members.start(programs[slot], **common, **options)

    ends = live(server.bootstrap, topic, members, start)
    assert_at_least_once(members.all, ends)
    assert committed(server, group, topic) == ends


def committed(server: Server, group: str, topic: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(topic, p) for p in ALL], timeout=20)
    consumer.close()
    return {p.partition: p.offset for p in found}


@pytest.mark.parametrize("program", [LIBRDKAFKA, KAFKA_PYTHON])
def test_a_cooperative_member_keeps_what_stays_its_own(
    program: str, server: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    common = {"bootstrap": server.bootstrap, "group": new_name(), "topic": new_topic(len(ALL))}
    a = members.start(program, strategy="cooperative-sticky", **common)
    eventually(lambda: shared(a), what="one has all")
    b = members.start(program, strategy="cooperative-sticky", **common)
    eventually(lambda: shared(a, b), what="two share")
    revoked = [p for event in a.told("revoked") for p in event["partitions"]]
    assert sorted(revoked) == b.owns


@pytest.mark.parametrize("program", [LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA])
def test_a_static_member_that_comes_back_in_time_disturbs_nobody(
    program: str, server: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    group = new_name()
    common = {"bootstrap": server.bootstrap, "group": group, "topic": new_topic(len(ALL)), "session_timeout": 30_000}
    a, b, c = (members.start(program, instance=f"{group}-{slot}", **common) for slot in range(3))
    eventually(lambda: shared(a, b, c), what="three share")
    before, owned = monotonic(), c.owns
    c.kill()
    c = members.start(program, instance=f"{group}-2", **common)
    eventually(lambda: c.owns == owned, what="it has what it had")
    assert [e for m in (a, b) for e in m.events if e["at"] > before and e["event"] in ("revoked", "owns")] == []


def test_the_later_of_two_with_one_instance_id_fences_the_earlier(
    server: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    common = {"bootstrap": server.bootstrap, "group": new_name(), "topic": new_topic(len(ALL)), "instance": "the-one"}
    earlier = members.start(LIBRDKAFKA, session_timeout=30_000, **common)
    eventually(lambda: shared(earlier), what="one has all")
    later = members.start(LIBRDKAFKA, session_timeout=30_000, **common)
    eventually(lambda: earlier.told("error"), what="the earlier is told")
    assert "Static consumer fenced" in earlier.told("error")[0]["text"]
    eventually(lambda: shared(later), what="the later has all")


def test_what_the_group_looks_like_from_outside(
    server: Server, admin: AdminClient, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    group, topic = new_name(), new_topic(len(ALL))
    a, b = (members.start(p, bootstrap=server.bootstrap, group=group, topic=topic) for p in (LIBRDKAFKA, AIOKAFKA))
    eventually(lambda: shared(a, b), what="two share")
    seen = admin.describe_consumer_groups([group])[group].result(20)
    assert seen.state == ConsumerGroupState.STABLE
    assert seen.partition_assignor == "range"
    assert sorted(sorted(p.partition for p in m.assignment.topic_partitions) for m in seen.members) == sorted(
        [a.owns, b.owns]
    )
    assert {m.host.removeprefix("/") for m in seen.members} == {"127.0.0.1"}
    a.leave()
    b.leave()
    assert admin.describe_consumer_groups([group])[group].result(20).state == ConsumerGroupState.EMPTY
    admin.delete_consumer_groups([group])[group].result(20)
    assert admin.describe_consumer_groups([group])[group].result(20).state == ConsumerGroupState.DEAD
