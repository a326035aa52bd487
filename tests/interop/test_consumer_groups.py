"""Consumer groups (KIP-848) of librdkafka: three that grow and shrink while records flow, and regular expressions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from ..waiting import eventually
from .group_life import ALL, live, shared
from .members import Feeder, MemberProcess, Members, assert_all_read, assert_at_least_once
from .servers import QUICK_CONSUMER_GROUPS, Server
from .topics import create_topic

NewName = Callable[[], str]
JAVA, LIBRDKAFKA, KOHORT, FRANZ, PLATFORMATIC = (
    "java group-member", "librdkafka_member", "kohort_member", "go consumer", "node consumer",
)  # fmt: skip

pytestmark = pytest.mark.parametrize("own_server", [QUICK_CONSUMER_GROUPS], indirect=True, ids=["quick"])


@pytest.fixture
def admin(own_server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": own_server.bootstrap})


def test_three_grow_and_shrink_and_nothing_is_lost(
    own_server: Server, admin: AdminClient, members: Members, new_name: NewName
) -> None:
    topic, group = create_topic(admin, new_name(), len(ALL), {}), new_name()
    common = {"bootstrap": own_server.bootstrap, "group": group, "topic": topic, "protocol": "consumer"}
    feeder = Feeder(own_server.bootstrap, topic, len(ALL))
    try:
        a = members.start(LIBRDKAFKA, **common)
        eventually(lambda: shared(a), within=30, what="one has all")
        b, c = (members.start(LIBRDKAFKA, **common) for _ in range(2))
        eventually(lambda: shared(a, b, c), within=30, what="three share")
        b.leave()
        eventually(lambda: shared(a, c), within=30, what="two share after one has left")
    finally:
        ends = feeder.stop()
    eventually(lambda: members.committed() == ends, within=30, what="all is read and committed")
    described = admin.describe_consumer_groups([group])[group].result(10)
    assert (described.state.name, described.type.name, len(described.members)) == ("STABLE", "CONSUMER", 2)
    a.leave()
    c.leave()
    assert_at_least_once(members.all, ends)


@pytest.mark.long
@pytest.mark.parametrize(
    "programs",
    [
        pytest.param([LIBRDKAFKA] * 3, id="librdkafka"),
        pytest.param([JAVA] * 3, id="java"),
        pytest.param([FRANZ] * 3, id="franz-go"),
        pytest.param([PLATFORMATIC] * 3, id="platformatic"),
        pytest.param([LIBRDKAFKA, KOHORT, JAVA], id="librdkafka-kohort-java"),
        pytest.param([FRANZ, KOHORT, PLATFORMATIC], id="franz-go-kohort-platformatic"),
    ],
)
def test_three_grow_shrink_crash_and_come_back(
    programs: list[str], own_server: Server, admin: AdminClient, members: Members, new_name: NewName
) -> None:
    topic, group = create_topic(admin, new_name(), len(ALL), {}), new_name()
    common = {"bootstrap": own_server.bootstrap, "group": group, "topic": topic, "protocol": "consumer"}

    if JAVA in programs:
        MAVEN.require()

    def start(slot: int) -> MemberProcess:
        return members.start(programs[slot], **common)

    ends = live(own_server.bootstrap, topic, members, start)
    if PLATFORMATIC in programs:  # gives and commits what it has in hand of a partition after it gave that up
        assert_all_read(members.all, ends)
    else:
        assert_at_least_once(members.all, ends)


@pytest.mark.long
def test_a_broker_that_crashes_loses_nothing(
    own_server: Server, admin: AdminClient, members: Members, new_name: NewName
) -> None:
    MAVEN.require()
    topic, group = create_topic(admin, new_name(), len(ALL), {}), new_name()
    common = {"bootstrap": own_server.bootstrap, "group": group, "topic": topic, "protocol": "consumer"}
    running = [members.start(program, **common) for program in (JAVA, FRANZ, LIBRDKAFKA)]
    feeder = Feeder(own_server.bootstrap, topic, len(ALL))
    try:
        eventually(lambda: shared(*running), within=60, what="three share")
        for _ in range(2):
            start = feeder.delivered
            eventually(lambda: feeder.delivered > start + 300, what="records flow")  # noqa: B023
            own_server.restart()
    finally:
        ends = feeder.stop()
    eventually(lambda: members.committed() == ends, within=60, what="all is read and committed")
    eventually(lambda: shared(*running), within=60, what="three share again")
    for member in running:
        member.leave()
    assert_at_least_once(members.all, ends)


@pytest.mark.long  # within ten seconds, regular expressions are not resolved again
def test_a_regular_expression_finds_topics_that_come_later(
    own_server: Server, admin: AdminClient, new_name: NewName
) -> None:
    stem = new_name()
    create_topic(admin, f"{stem}-a", 1, {})
    settings = {"bootstrap.servers": own_server.bootstrap, "group.id": new_name(), "group.protocol": "consumer"}
    consumer = Consumer(settings | {"auto.offset.reset": "earliest"})
    consumer.subscribe([f"^{stem}-.*"])
    producer = Producer({"bootstrap.servers": own_server.bootstrap})

    def reads(topic: str) -> bool:
        message = consumer.poll(0.1)
        return message is not None and not message.error() and message.topic() == topic

    producer.produce(f"{stem}-a", b"first")
    producer.flush()
    eventually(lambda: reads(f"{stem}-a"), within=30, what="the first topic is read")
    create_topic(admin, f"{stem}-b", 1, {})
    producer.produce(f"{stem}-b", b"second")
    producer.flush()
    eventually(lambda: reads(f"{stem}-b"), within=30, what="the second topic is read")
    consumer.close()
