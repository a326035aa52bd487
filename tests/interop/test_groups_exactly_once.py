"""Consume, transform, produce in transactions, with members that are killed: the output has every record once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..waiting import eventually
from .members import Feeder, MemberProcess, Members
from .servers import Server
from .topics import numbers, read_partitions

pytestmark = pytest.mark.long

NewTopic = Callable[..., str]
NewName = Callable[[], str]
PARTITIONS = 6
PROGRAMS = {"librdkafka": "librdkafka_transformer", "kafka-python": "kafka_python_transformer"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_output_is_exact_though_members_are_killed(
    name: str, server: Server, members: Members, new_topic: NewTopic, new_name: NewName
) -> None:
    source, target, group = new_topic(PARTITIONS), new_topic(PARTITIONS), new_name()

    def start(slot: int) -> MemberProcess:
        return members.start(
            PROGRAMS[name],
            bootstrap=server.bootstrap,
            group=group,
            topic=source,
            target=target,
            transactional_id=f"{group}-{slot}",
        )

    feeder = Feeder(server.bootstrap, source, PARTITIONS)
    try:
        running = [start(slot) for slot in range(3)]
        for slot in (0, 1):
            eventually(lambda: all(m.told("committed") for m in running), within=60, what="all three have committed")
            running[slot].kill()
            running[slot] = start(slot)
        eventually(lambda: all(m.told("committed") for m in running), within=60, what="all three have committed again")
    finally:
        ends = feeder.stop()
    eventually(lambda: members.committed() == ends, within=60, what="all is transformed")
    for member in running:
        member.leave()
    assert read_partitions(server.bootstrap, target, PARTITIONS) == numbers(ends)
