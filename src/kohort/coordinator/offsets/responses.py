"""Responses to commits that fail as a whole."""

from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

__all__ = ["commit_refused", "txn_commit_refused"]


def commit_refused(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The response with one error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponse.Topic.Partition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_commit_refused(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The response with one error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.Topic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.Topic.Partition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
