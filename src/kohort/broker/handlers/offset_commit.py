"""OffsetCommit: commits a group's offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.offset_requests import TopicMerger, portions
from kohort.broker.reply import Reply, when_replied
from kohort.broker.turns import Slices, in_slices
from kohort.coordinator.offsets import commit_refused
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.schema import NO_UUID

SERVED: Final = Served(OffsetCommitRequest, versions=(2, 10))

_Topic = OffsetCommitResponse.Topic

BY_ID: Final = 10
"""First version that identifies topics by id."""
MAX_RETENTION_MS: Final = 2**62
"""Longer retentions are cut to this, so that the expiry time fits into an int64."""


def handle(
    request: OffsetCommitRequest, context: Context
) -> Slices[OffsetCommitResponse | Reply[OffsetCommitResponse]]:
    """Commits the offsets of partitions that exist and may be read; the others get errors."""
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _by_version(commit_refused(request, ErrorCode.GROUP_AUTHORIZATION_FAILED), context)
    topics = context.broker.topics
    answers: list[_Topic] = []
    accepted: list[OffsetCommitRequest.Topic] = []
    for requested in request.topics:
        yield
        if context.version >= BY_ID:
            topic = topics.by_id(requested.topic_id)
            error = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = topics.get(requested.name)
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not context.allowed(Operation.READ, ResourceType.TOPIC, topic.name if topic else requested.name):
            topic = None
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known, unknown = [], []
        for partition in requested.partitions:
            if topic is not None and topic.partition(partition.partition_index) is not None:
                known.append(partition)
            else:
                unknown.append(partition)
            yield
        name = topic.name if topic is not None else requested.name
        if unknown:
            code = error if topic is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused = _Topic(name=name, topic_id=requested.topic_id)
            answers.append(refused)
            refused.partitions = yield from in_slices(
                lambda each, code=code: _Topic.Partition(partition_index=each.partition_index, error_code=code),  # type: ignore[misc]
                unknown,
            )
        if known and topic is not None:
            accepted.append(OffsetCommitRequest.Topic(name=name, topic_id=topic.id, partitions=known))
    if not accepted:
        return _by_version(OffsetCommitResponse(topics=answers), context)
    commits = list(portions(accepted, lambda topic: topic.partitions, _part))
    return (yield from _commit_all(request, commits, answers, context))


def _part(
    topic: OffsetCommitRequest.Topic, partitions: Sequence[OffsetCommitRequest.Topic.Partition]
) -> OffsetCommitRequest.Topic:
    return OffsetCommitRequest.Topic(name=topic.name, topic_id=topic.topic_id, partitions=list(partitions))


def _commit_all(
    request: OffsetCommitRequest,
    commits: list[list[OffsetCommitRequest.Topic]],
    answers: list[_Topic],
    context: Context,
) -> Slices[Reply[OffsetCommitResponse]]:
    """Commits each portion by itself: a step of the coordinator has to be short, and its records fit into a batch."""
    reply: Reply[OffsetCommitResponse] = Reply()
    response = OffsetCommitResponse()
    merger = TopicMerger(response.topics)
    pending = len(commits)

    def receive(part: OffsetCommitResponse) -> None:
        nonlocal pending
        merger.add(part.topics)
        pending -= 1
        if not pending:
            merger.add(answers)
            reply(_by_version(response, context))

    for topics in commits:
        portion = OffsetCommitRequest(
            group_id=request.group_id,
            generation_id_or_member_epoch=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            retention_time_ms=min(request.retention_time_ms, MAX_RETENTION_MS),
            topics=topics,
        )
        when_replied(_commit(portion, context), receive)
        yield
    return reply


def _commit(portion: OffsetCommitRequest, context: Context) -> OffsetCommitResponse | Reply[OffsetCommitResponse]:
    return context.broker.groups.submit(
        portion.group_id,
        lambda shard, now, reply: shard.offsets.commit(portion, context.client, now, reply),
        lambda code: commit_refused(portion, code),
    )


def _by_version(response: OffsetCommitResponse, context: Context) -> OffsetCommitResponse:
    """Leaves ids or names in the response, by API version."""
    for topic in response.topics:
        if context.version >= BY_ID:
            topic.name = ""
        else:
            topic.topic_id = NO_UUID
    return response
