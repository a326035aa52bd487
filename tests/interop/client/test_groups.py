"""Groups of Kohort's consumers and others that grow, shrink, crash and come back, while records flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from ...waiting import eventually
from ..group_life import ALL, live, shared
from ..members import MemberProcess, Members, assert_at_least_once, monotonic
from ..servers import Server
from .owners import assert_one_owner

NewTopic = Callable[..., str]
NewName = Callable[[], str]
KOHORT, LIBRDKAFKA, KAFKA_PYTHON = "kohort_member", "librdkafka_member", "kafka_python_member"


class Case(NamedTuple):
    """Who is in the group, and how."""

    programs: list[str]
    strategy: str = "range"
    static: bool = False
    protocol: str = "classic"
    tell: bool = True  # all programs tell what they are assigned


GROUPS = [
    pytest.param("kohort", Case([KOHORT, LIBRDKAFKA, KOHORT]), id="kohort-range"),
    pytest.param(
        "kohort", Case([LIBRDKAFKA, KOHORT, KOHORT], "roundrobin", static=True), id="kohort-roundrobin-static"
    ),
    pytest.param("kohort", Case([KOHORT, KAFKA_PYTHON, KOHORT], "sticky", tell=False), id="kohort-sticky"),
    pytest.param("kohort", Case([KOHORT, LIBRDKAFKA, KOHORT], "cooperative-sticky"), id="kohort-cooperative"),
    pytest.param("kohort", Case([KOHORT, LIBRDKAFKA, KOHORT], protocol="consumer"), id="kohort-consumer"),
    pytest.param("kohort", Case([LIBRDKAFKA] * 3, protocol="consumer"), id="kohort-consumer-librdkafka"),
    pytest.param(
        "kohort", Case([KOHORT, KOHORT, LIBRDKAFKA], protocol="consumer", static=True), id="kohort-consumer-static"
    ),
    pytest.param("kafka", Case([LIBRDKAFKA, KOHORT, KOHORT], "cooperative-sticky"), id="kafka-cooperative"),
    pytest.param("kafka", Case([KOHORT, LIBRDKAFKA, KOHORT], protocol="consumer"), id="kafka-consumer"),
    pytest.param(
        "kafka", Case([KOHORT, KOHORT, LIBRDKAFKA], protocol="consumer", static=True), id="kafka-consumer-static"
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("broker", "case"), GROUPS, indirect=["broker"])
def test_a_group_of_several_libraries_lives(
    broker: Server, case: Case, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    """At the end, nothing was lost, nothing was read twice without need, nothing was owned by two."""
    topic, group = new_topic(len(ALL)), new_name()

    def start(slot: int) -> MemberProcess:
        options: dict[str, Any] = {"instance": f"{group}-{slot}"} if case.static else {}
        if case.protocol != "classic":
            options["protocol"] = case.protocol
        common = {"bootstrap": broker.bootstrap, "group": group, "topic": topic, "strategy": case.strategy}
        return members.start(case.programs[slot], **common, **options)

    ends = live(broker.bootstrap, topic, members, start)
    assert not [each for member in members.all for each in member.told("error")]
    assert_at_least_once(members.all, ends)
    if case.tell:
        assert_one_owner(members.all)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    found = consumer.committed([TopicPartition(topic, p) for p in ALL], timeout=20)
    consumer.close()
    assert {each.partition: each.offset for each in found} == ends


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("broker", ["kafka"], indirect=True)
def test_two_libraries_share_whoever_leads(
    strategy: str, broker: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    """The first to come leads the group, and assigns to both."""
    common = {"bootstrap": broker.bootstrap, "group": new_name(), "topic": new_topic(len(ALL)), "strategy": strategy}
    a = members.start(LIBRDKAFKA, **common)
    eventually(lambda: shared(a), what="one has all")
    b = members.start(KOHORT, **common)
    eventually(lambda: shared(a, b), what="librdkafka has assigned")
    a.leave()
    eventually(lambda: shared(b), what="the other has all")
    c = members.start(LIBRDKAFKA, **common)
    eventually(lambda: shared(b, c), what="Kohort has assigned")
    assert_one_owner(members.all)


def test_a_cooperative_member_keeps_what_stays_its_own(
    broker: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    common = {"bootstrap": broker.bootstrap, "group": new_name(), "topic": new_topic(len(ALL))}
    a = members.start(KOHORT, strategy="cooperative-sticky", **common)
    eventually(lambda: shared(a), what="one has all")
    b = members.start(LIBRDKAFKA, strategy="cooperative-sticky", **common)
    eventually(lambda: shared(a, b), what="two share")
    revoked = [p for event in a.told("revoked") for p in event["partitions"]]
    assert sorted(revoked) == b.owns


@pytest.mark.parametrize(
    ("broker", "protocol"), [("kohort", "classic"), ("kohort", "consumer"), ("kafka", "consumer")], indirect=["broker"]
)
def test_a_static_member_that_comes_back_in_time_disturbs_nobody(
    protocol: str, broker: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    group = new_name()
    common = {"bootstrap": broker.bootstrap, "group": group, "topic": new_topic(len(ALL)), "session_timeout": 30_000}
    a, b, c = (members.start(KOHORT, instance=f"{group}-{n}", protocol=protocol, **common) for n in range(3))
    eventually(lambda: shared(a, b, c), what="three share")
    before, owned = monotonic(), c.owns
    c.leave()
    c = members.start(KOHORT, instance=f"{group}-2", protocol=protocol, **common)
    eventually(lambda: c.owns == owned, what="it has what it had")
    assert [e for m in (a, b) for e in m.events if e["at"] > before and e["event"] in ("revoked", "owns")] == []


def test_the_later_of_two_with_one_instance_id_fences_the_earlier(
    broker: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    common = {"bootstrap": broker.bootstrap, "group": new_name(), "topic": new_topic(len(ALL)), "instance": "the-one"}
    earlier = members.start(KOHORT, session_timeout=30_000, **common)
    eventually(lambda: shared(earlier), what="one has all")
    later = members.start(KOHORT, session_timeout=30_000, **common)
    eventually(lambda: earlier.told("error"), what="the earlier is told")
    assert earlier.told("error")[0]["error"] == "FencedError"
    eventually(lambda: shared(later), what="the later has all")
