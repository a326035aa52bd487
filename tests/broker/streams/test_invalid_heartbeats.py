"""Malformed and extreme heartbeats: each is answered quickly, and the server goes on."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TaskOffset, TopicInfo
from tests.broker.conftest import Run, serving
from tests.broker.streams.members import Crowd, Request, StreamsClient, Subtopology, Topology, counting, stateless
from tests.broker.streams.solvers import InProcess

SOON = 30.0
"""Seconds within which any answer has to come, on a busy machine."""


def parts(number: int) -> Topology:
    """So many subtopologies, each with a store."""
    return Topology(
        epoch=0,
        subtopologies=[
            Subtopology(
                subtopology_id=str(index),
                source_topics=(f"topic-{index}",),
                state_changelog_topics=[TopicInfo(name=f"changelog-{index}")],
            )
            for index in range(number)
        ],
    )


def reading(*patterns: str) -> Topology:
    return Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topic_regex=patterns)])


def chain(number: int, *, closed: bool) -> Topology:
    """Subtopologies that each read what the one before writes; the first reads the last's, or a topic that is there."""

    def link(index: int) -> TopicInfo:
        return TopicInfo(name=f"link-{index % number}")

    first = Subtopology(subtopology_id="first", source_topics=("words",), repartition_sink_topics=(link(0).name,))
    return Topology(
        epoch=0,
        subtopologies=[
            *([] if closed else [first]),
            *(
                Subtopology(
                    subtopology_id=str(index),
                    repartition_source_topics=[link(index)],
                    repartition_sink_topics=(link(index + 1).name,) if closed or index + 1 < number else (),
                )
                for index in range(number)
            ),
        ],
    )


TOPOLOGIES = {
    "no subtopologies": Topology(epoch=0, subtopologies=[]),
    "many subtopologies": parts(10_000),
    "many stores": Topology(
        epoch=0,
        subtopologies=[
            Subtopology(
                subtopology_id="0",
                source_topics=("words",),
                state_changelog_topics=[TopicInfo(name=f"changelog-{index}") for index in range(600)],
            )
        ],
    ),
    "many sources": stateless(*(f"topic-{index}" for index in range(20_000))),
    "a giant id": Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="x" * 30_000, source_topics=("words",))]),
    "a giant topic": stateless("x" * 30_000),
    "a greedy pattern": reading("(x+x+)+y"),
    "a giant pattern": reading("x" * 30_000),
    "a deep pattern": reading("(" * 900 + ")" * 900),
    "a pattern that repeats": reading("((a{1,100}){1,100}){1,100}"),
    "many patterns": reading(*(f"topic-{index}.*" for index in range(20_000))),
    "a long chain": chain(500, closed=False),
    "a circle": chain(500, closed=True),
    "a giant repartition topic": Topology(
        epoch=0,
        subtopologies=[
            Subtopology(subtopology_id="0", source_topics=("words",), repartition_sink_topics=("big",)),
            Subtopology(subtopology_id="1", repartition_source_topics=[TopicInfo(name="big", partitions=2**31 - 1)]),
        ],
    ),
    "settings without end": counting(**{f"key_{index}": "x" * 1000 for index in range(900)}),
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_topology_is_answered_soon(with_crowd: Run, caplog: pytest.LogCaptureFixture, name: str) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 1)
        other = await crowd.joined(stateless("words"), group="other")
        member = await crowd.member(TOPOLOGIES[name])

        async with asyncio.timeout(SOON):
            for _ in range(3):
                response = await member.join()
                await other.beat()

        assert response.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
        assert sum(len(status.status_detail) for status in response.status or ()) < 10_000
        assert len(response.error_message or "") < 10_000

    with_crowd(test)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "fields",
    [
        {"active_tasks": [TaskIds(subtopology_id="0", partitions=tuple(range(100_000)))]},
        {"active_tasks": [TaskIds(subtopology_id=f"{part}", partitions=(0,)) for part in range(30_000)]},
        {"task_offsets": [TaskOffset(subtopology_id="0", partition=part, offset=1) for part in range(30_000)]},
        {"client_tags": [KeyValue(key=f"{number}", value="v") for number in range(30_000)]},
        {"rack_id": "x" * 30_000},
        {"user_endpoint": Endpoint(host="x" * 30_000, port=1)},
    ],
    ids=["many tasks", "many tasks of many", "many offsets", "many tags", "a giant rack", "a giant host"],
)
def test_a_heartbeat_is_answered_soon(with_crowd: Run, fields: dict[str, Any]) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 1)
        member = await crowd.joined(stateless("words"))

        async with asyncio.timeout(SOON):
            for _ in range(3):
                response = await member.beat(**fields)

        assert len(response.error_message or "") < 10_000

    with_crowd(test)


def test_a_topology_that_is_too_large_for_a_record_leaves_no_group(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 1)
        member = await crowd.member(counting(**{f"key_{index}": "x" * 1000 for index in range(9000)}))

        assert (await member.join()).error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # as of Kafka

        assert not any(shard.list_groups() for shard in crowd.server.broker.groups.active())

    with_crowd(test)


class Chaos:
    """Heartbeats that are mostly well formed, of members that are mostly there."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.topologies = [stateless("words"), counting(), counting("x"), reading("wo.*"), stateless("absent")]

    def change(self, member: StreamsClient) -> dict[str, Any]:
        """Fields that differ from what a well-behaved member would say."""
        draw = self.draw
        fields: dict[str, Any] = {}
        if draw.random() < 0.3:
            fields["member_epoch"] = draw.choice((-3, -2, -1, -1, 0, 1, 2, member.epoch - 1, member.epoch + 1))
        if draw.random() < 0.2:
            fields["instance_id"] = draw.choice((None, "i", "j"))
        if draw.random() < 0.2:
            fields["task_offsets"] = list(self.offsets())
            fields["task_end_offsets"] = list(self.offsets())
        if draw.random() < 0.2:
            fields["user_endpoint"] = Endpoint(host="h", port=draw.randrange(3))
        if draw.random() < 0.1:
            fields["shutdown_application"] = True
        for kind in ("active_tasks", "standby_tasks", "warmup_tasks"):
            if draw.random() < 0.2:
                fields[kind] = draw.choice((None, [], list(self.tasks())))
        if draw.random() < 0.1:
            fields["topology"] = draw.choice(self.topologies)
        return fields

    def tasks(self) -> Iterator[TaskIds]:
        for part in self.draw.sample(("0", "1", "2"), self.draw.randrange(3)):
            yield TaskIds(subtopology_id=part, partitions=tuple(self.draw.choices(range(5), k=2)))

    def offsets(self) -> Iterator[TaskOffset]:
        for part in self.draw.sample(("0", "1"), 1):
            number = self.draw.randrange(5)
            yield TaskOffset(subtopology_id=part, partition=number, offset=self.draw.choice((-4, -2, 0, 5, 2**62)))


async def described(member: StreamsClient) -> Any:
    """The groups, without what only members know."""
    response = await member.client.call(StreamsGroupDescribeRequest(group_ids=("app", "other")))
    for group in response.groups:
        for each in group.members:
            each.task_offsets = each.task_end_offsets = []
    return response.groups


@pytest.mark.parametrize("seed", range(3))
def test_chaos_leaves_the_server_well_and_a_restart_comes_to_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    chaos = Chaos(seed)
    draw = chaos.draw
    quick = ("group.streams.initial.rebalance.delay.ms=0", "group.streams.num.standby.replicas=1")

    async def cause(crowd: Crowd) -> Any:
        crowd.topics.create("words", 2)
        members = [
            await crowd.member(
                chaos.topologies[0], draw.choice(("app", "other")), process=draw.choice((None, "p", "q"))
            )
            for _ in range(6)
        ]
        for number in range(300):
            member = draw.choice(members)
            if draw.random() < 0.15 or not member.epoch:
                member.topology = draw.choice(chaos.topologies)
                response = await member.join(**(chaos.change(member) if draw.random() < 0.3 else {}))
            else:
                response = await member.beat(**(chaos.change(member) if draw.random() < 0.5 else {}))
            assert response.error_code != ErrorCode.UNKNOWN_SERVER_ERROR, response
            if response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
                member.epoch = 0
            member.epoch = max(member.epoch, 0)
            if number % 60 == 30:
                crowd.topics.delete("words")
            elif number % 60 == 59:
                crowd.topics.create("words", draw.randrange(1, 4))
        await asyncio.sleep(0)
        while crowd.server.broker.groups.placer.pending:  # what comes of it would be in the log, but not described
            await asyncio.sleep(0.005)
        return await described(members[0])

    async def main() -> None:
        async with serving(tmp_path, *quick) as server:
            server.broker.groups.placer._solver = InProcess()
            crowd = Crowd(server)
            before = await cause(crowd)
            await crowd.close()
        async with serving(tmp_path, *quick) as server:
            crowd = Crowd(server)
            member = await crowd.member(chaos.topologies[0])
            while server.broker.groups.loading():
                await asyncio.sleep(0.005)
            assert await described(member) == before
            await crowd.close()

    asyncio.run(main())
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_requests_that_are_cut_off_close_the_connection_alone(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 1)
        good = await crowd.joined(stateless("words"))
        body = Request(group_id="app", member_id="m", topology=counting()).encode(0)
        for end in range(0, len(body), 5):
            client = await crowd.client()
            head = b"\x00\x58\x00\x00\x00\x00\x00\x01\x00\x01c\x00"
            client.writer.write((len(head) + end).to_bytes(4, "big") + head + body[:end])
            assert await client.closed()

        assert (await good.beat()).error_code == ErrorCode.NONE

    with_crowd(test)
