"""Commits and committed offsets against a coordinator that says what the test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from kohort.client.errors import CommitFailedError, FencedError, RequestTimeoutError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tests.client.membership.members import Recorder, member
from tests.client.support.scripted_broker import Asked, ScriptedBroker
from tests.waiting import run, until

T = UUID(int=9)
AT = TopicPartition("t", 0)
OFFSETS = {AT: OffsetAndMetadata(5, 1, "note")}


class Coordinator(ScriptedBroker):
    """Of a consumer group whose member has everything; the epoch rises with each heartbeat."""

    def __init__(self, codes: list[int], **options: Any) -> None:
        super().__init__(**options)
        self.codes = codes
        self.epoch = 0
        self.forget = False
        parts = [MetadataResponse.Topic.Partition(partition_index=n, leader_id=1) for n in range(2)]
        self.topics["t"] = MetadataResponse.Topic(name="t", topic_id=T, partitions=parts)
        self.script = {
            FindCoordinatorRequest: lambda _: FindCoordinatorResponse(
                coordinators=[FindCoordinatorResponse.Coordinator(key="g", node_id=1, host=self.host, port=self.port)]
            ),
            ConsumerGroupHeartbeatRequest: self.heartbeat,
            OffsetCommitRequest: self.commit,
            OffsetFetchRequest: self.fetch,
        }

    def heartbeat(self, asked: Asked) -> ConsumerGroupHeartbeatResponse:
        self.epoch += 1
        if self.forget and asked.request.member_epoch > 0:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        assignment = None
        if asked.request.member_epoch == 0:
            given = [TopicPartitions(topic_id=T, partitions=(0, 1))]
            assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=given)
        return ConsumerGroupHeartbeatResponse(member_epoch=self.epoch, heartbeat_interval_ms=50, assignment=assignment)

    def code(self) -> int:
        return self.codes.pop(0) if self.codes else 0

    def commit(self, asked: Asked) -> OffsetCommitResponse:
        code = self.code()
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponse.Topic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        OffsetCommitResponse.Topic.Partition(partition_index=each.partition_index, error_code=code)
                        for each in topic.partitions
                    ],
                )
                for topic in asked.request.topics
            ]
        )

    def fetch(self, asked: Asked) -> OffsetFetchResponse:
        code = self.code()
        if asked.version < 8:
            kind = OffsetFetchResponse.Topic
            part = kind.Partition(partition_index=0, committed_offset=5, metadata="note", error_code=code)
            return OffsetFetchResponse(topics=[kind(name="t", partitions=[part])])
        group = OffsetFetchResponse.Group
        part = group.Topic.Partition(
            partition_index=0, committed_offset=5, committed_leader_epoch=1, metadata="note", error_code=code
        )
        topic = group.Topic(name="t", topic_id=T, partitions=[part])
        return OffsetFetchResponse(groups=[group(group_id="g", topics=[topic])])


@asynccontextmanager
async def joined(codes: list[int], **options: Any) -> AsyncIterator[tuple[Coordinator, Recorder]]:
    async with (
        Coordinator(codes, **options) as broker,
        member(broker.address, "t", group_protocol="consumer") as one,
    ):
        await until(lambda: len(one.assigned) == 2)
        yield broker, one


def versions(broker: Coordinator, kind: Any) -> list[int]:
    return [asked.version for asked in broker.asked if isinstance(asked.request, kind)]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], [10]),
        (
            [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.REBALANCE_IN_PROGRESS],
            [10] * 4,
        ),
        ([ErrorCode.STALE_MEMBER_EPOCH], [10, 10]),
        ([ErrorCode.UNKNOWN_TOPIC_ID], [10, 9]),
    ],
)
def test_commit(codes: list[int], expected: list[int]) -> None:
    async def test() -> None:
        async with joined([*codes]) as (broker, one):
            assert await one.connector.commit(OFFSETS) == {}
            assert versions(broker, OffsetCommitRequest) == expected
            last: Any = broker.requests(OffsetCommitRequest)[-1]
            assert last.member_id and last.generation_id_or_member_epoch > 0
            [topic] = last.topics
            assert (topic.name, topic.topic_id.int) == (("", 9) if expected[-1] == 10 else ("t", 0))
            [part] = topic.partitions
            assert (part.committed_offset, part.committed_leader_epoch, part.committed_metadata) == (5, 1, "note")

    run(test())


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        ([ErrorCode.STALE_MEMBER_EPOCH] * 2, CommitFailedError),
        ([ErrorCode.UNKNOWN_MEMBER_ID] * 2, CommitFailedError),
        ([ErrorCode.FENCED_INSTANCE_ID], FencedError),
        ([ErrorCode.GROUP_AUTHORIZATION_FAILED], KafkaError),
        ([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 99, RequestTimeoutError),
    ],
)
def test_commits_that_fail(codes: list[int], error: type[Exception]) -> None:
    async def test() -> None:
        async with joined([*codes]) as (_, one):
            with pytest.raises(error):
                await one.connector.commit(OFFSETS, timeout_ms=400)

    run(test())


def test_partitions_that_fail() -> None:
    async def test() -> None:
        async with joined([ErrorCode.OFFSET_METADATA_TOO_LARGE]) as (_, one):
            failed = await one.connector.commit(OFFSETS)
            assert isinstance(failed[AT], KafkaError) and failed[AT].code is ErrorCode.OFFSET_METADATA_TOO_LARGE

    run(test())


def test_a_topic_that_is_gone_holds_no_rebalance_up() -> None:
    async def test() -> None:
        async with joined([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 99) as (broker, one):
            one.revoking = asyncio.Event()
            del broker.topics["t"]
            failed = await one.connector.commit(OFFSETS, timeout_ms=5_000)
            assert isinstance(failed[AT], KafkaError)
            one.revoking.set()

    run(test())


@pytest.mark.parametrize("newest", [1, 5, 7, 8, 9, 10])
def test_versions(newest: int) -> None:
    async def test() -> None:
        speaks = {OffsetFetchRequest: (1, newest), OffsetCommitRequest: (2, max(newest, 2))}
        async with joined([], versions=speaks) as (broker, one):
            [(at, found)] = (await one.connector.committed([AT])).items()
            assert at == AT and found is not None and found.offset == 5 and found.metadata == "note"
            assert versions(broker, OffsetFetchRequest) == [newest]
            if newest >= 9:
                request: Any = broker.requests(OffsetFetchRequest)[0]
                assert request.groups[0].member_epoch > 0 and request.require_stable
            if newest >= 7:
                assert await one.connector.commit(OFFSETS) == {}

    run(test())


def test_open_transactions_are_waited_for() -> None:
    async def test() -> None:
        codes = [ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        async with joined([*codes]) as (broker, one):
            assert await one.connector.committed([AT]) == OFFSETS
            assert len(versions(broker, OffsetFetchRequest)) == 3

    run(test())


def test_forgotten_member_joins_again() -> None:
    async def test() -> None:
        async with joined([]) as (broker, one):
            broker.forget = True
            await until(lambda: one.calls.count("lose"))
            broker.forget = False
            await until(lambda: one.calls.count("assign") > 1 and len(one.assigned) == 2)
            assert not one.errors

    run(test())


@pytest.mark.parametrize("bad", [b"", b"\0\0\0\x06\0\0\0\x01ab", b"\xff" * 20, b"\x7f\xff\xff\xff"], ids=repr)
def test_answers_that_are_none(bad: bytes) -> None:
    """What can't be read is a lost connection: fetchers stop, and it's tried again until it works."""

    async def test() -> None:
        async with joined([]) as (broker, one):
            good: Callable[[Asked], Any] = broker.script[ConsumerGroupHeartbeatRequest]
            broker.script[ConsumerGroupHeartbeatRequest] = lambda _: bad or None
            if not bad:
                broker.hang_up()
            await until(lambda: one.suspended)
            broker.script[ConsumerGroupHeartbeatRequest] = good
            if not bad:
                broker.hang_up()
            await until(lambda: not one.suspended)
            assert one.calls == ["assign"] or "lose" in one.calls

    run(test())
