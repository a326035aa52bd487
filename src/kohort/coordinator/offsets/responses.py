"""Responses to OffsetCommit and TxnOffsetCommit."""

from __future__ import annotations

from collections.abc import Callable

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


def commit_response(request: OffsetCommitRequest, check: Callable[[str], ErrorCode]) -> OffsetCommitResponse:
    """The response in which `check` gives the error of each partition, from the offset's metadata."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponse.Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponse.Topic.Partition(
                        partition_index=each.partition_index, error_code=check(each.committed_metadata or "")
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def txn_commit_response(request: TxnOffsetCommitRequest, check: Callable[[str], ErrorCode]) -> TxnOffsetCommitResponse:
    """The same for TxnOffsetCommit."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.Topic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponse.Topic.Partition(
                        partition_index=each.partition_index, error_code=check(each.committed_metadata or "")
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def commit_refused(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The response with one error for every partition."""
    return commit_response(request, lambda _: code)


def txn_commit_refused(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The response with one error for every partition."""
    return txn_commit_response(request, lambda _: code)
