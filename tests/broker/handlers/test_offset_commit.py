"""OffsetCommit: committed offsets of groups."""

from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from tests.broker.handlers.served import Run, ask


def test_an_offset_may_be_kept_for_ever(with_server: Run) -> None:
    part = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        retention_time_ms=2**63 - 1,
        topics=[OffsetCommitRequest.Topic(name="t", partitions=[part])],
    )
    assert ask(with_server, request, 2).topics[0].partitions[0].error_code == ErrorCode.NONE
