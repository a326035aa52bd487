"""Offsets that members of streams groups commit and fetch, with the epoch that they have."""

from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.broker.conftest import Run
from tests.broker.streams.members import Crowd, StreamsClient, reconcile, stateless


async def member_of(crowd: Crowd) -> StreamsClient:
    crowd.topics.create("words", 1)
    member = await crowd.joined(stateless("words"))
    await reconcile(member)
    return member


async def commit(member: StreamsClient, epoch: int, version: int = 9, member_id: str | None = None) -> int:
    part = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=7)
    response = await member.client.call(
        OffsetCommitRequest(
            group_id="app",
            generation_id_or_member_epoch=epoch,
            member_id=member.member_id if member_id is None else member_id,
            topics=[OffsetCommitRequest.Topic(name="words", partitions=[part])],
        ),
        version,
    )
    return int(response.topics[0].partitions[0].error_code)


async def fetch(member: StreamsClient, epoch: int, version: int = 9) -> tuple[int, int | None]:
    asked = OffsetFetchRequest.Group
    response = await member.client.call(
        OffsetFetchRequest(
            groups=[
                asked(
                    group_id="app",
                    member_id=member.member_id if version >= 9 else None,
                    member_epoch=epoch if version >= 9 else -1,
                    topics=[asked.Topic(name="words", partition_indexes=(0,))],
                )
            ]
        ),
        version,
    )
    (group,) = response.groups
    return group.error_code, None if group.error_code else group.topics[0].partitions[0].committed_offset


def test_a_member_commits_and_fetches(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await member_of(crowd)

        assert await commit(member, member.epoch) == ErrorCode.NONE
        assert await fetch(member, member.epoch) == (ErrorCode.NONE, 7)

    with_crowd(test)


def test_a_member_from_the_future_is_refused(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await member_of(crowd)

        assert await commit(member, member.epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
        assert (await fetch(member, member.epoch + 1))[0] == ErrorCode.STALE_MEMBER_EPOCH

    with_crowd(test)


def test_a_stranger_is_refused(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await member_of(crowd)

        assert await commit(member, member.epoch, member_id="stranger") == ErrorCode.UNKNOWN_MEMBER_ID

    with_crowd(test)


def test_versions_that_know_no_member_epochs(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await member_of(crowd)

        assert await commit(member, member.epoch, version=8) == ErrorCode.UNSUPPORTED_VERSION
        assert await fetch(member, -1, version=8) == (ErrorCode.NONE, -1)

    with_crowd(test)


@pytest.mark.parametrize(
    ("ahead", "version", "code"),
    [
        (0, 5, ErrorCode.NONE),
        (1, 5, ErrorCode.ILLEGAL_GENERATION),
        (0, 6, ErrorCode.NONE),
        (1, 6, ErrorCode.STALE_MEMBER_EPOCH),
    ],
)
def test_a_member_commits_in_a_transaction(with_crowd: Run, ahead: int, version: int, code: ErrorCode) -> None:
    async def test(crowd: Crowd) -> None:
        member = await member_of(crowd)
        crowd.server.broker.transactions.start()
        made = await member.client.call(InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=10_000))
        part = TxnOffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=7)
        words = crowd.topics.get("words")
        assert words is not None

        response = await member.client.call(
            TxnOffsetCommitRequest(
                transactional_id="t",
                group_id="app",
                producer_id=made.producer_id,
                producer_epoch=made.producer_epoch,
                generation_id_or_member_epoch=member.epoch + ahead,
                member_id=member.member_id,
                topics=[TxnOffsetCommitRequest.Topic(name="words", topic_id=words.id, partitions=[part])],
            ),
            version,
        )

        assert response.topics[0].partitions[0].error_code == code

    with_crowd(test)


def test_offsets_stay_when_the_group_becomes_empty(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await member_of(crowd)
        await commit(member, member.epoch)
        await member.leave()

        again = await crowd.joined(stateless("words"))

        assert await fetch(again, again.epoch) == (ErrorCode.NONE, 7)

    with_crowd(test)
