"""StreamsGroupHeartbeat: a member of a streams group joins, stays or leaves, and hears what it is to run (KIP-1071)."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator

from kohort.broker.context import Context
from kohort.broker.reply import Reply, changed, hear
from kohort.broker.security import Operation, ResourceType
from kohort.coordinator.streams.environment import Cluster
from kohort.coordinator.streams.request_validation import check_topology
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kohort.streams.statuses import StatusCode

log = logging.getLogger("kohort.broker.streams")

Response = StreamsGroupHeartbeatResponse


def handle(request: StreamsGroupHeartbeatRequest, context: Context) -> Response | Reply[Response]:
    """Ask the group's coordinator, and create the internal topics that it finds missing."""
    groups = context.broker.groups
    if not groups.streams_offered:
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is not None:
        try:
            _check_topics_allowed(request.topology, context)
        except KafkaError as error:
            return HeartbeatResult.refused(error).response
        if not groups.placer.ready:
            # The first of all members waits a moment; it would have to come again for its tasks otherwise.
            reply: Reply[Response] = Reply()
            groups.placer.get_ready(lambda: _ask_later(request, context, reply))
            return reply
    return _ask(request, context)


def _ask_later(request: StreamsGroupHeartbeatRequest, context: Context, reply: Reply[Response]) -> None:
    try:
        hear(_ask(request, context), reply)
    except Exception:
        log.exception("a join failed group=%s", shown(request.group_id))
        reply(_refuse(ErrorCode.UNKNOWN_SERVER_ERROR))


def _ask(request: StreamsGroupHeartbeatRequest, context: Context) -> Response | Reply[Response]:
    done = context.broker.groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.streams.heartbeat(request, context.client, now, reply),
        lambda code: HeartbeatResult(_refuse(code)),
    )
    return changed(done, lambda result: _answer(result, context))


def _answer(result: HeartbeatResult, context: Context) -> Response:
    """The group's answer, with what went wrong in creating its topics; the group hears of those that it has now."""
    response = result.response
    if not result.missing_topics:
        return response
    problem = context.broker.groups.internal_topics.create(result.missing_topics, context)
    if not problem:
        return response
    response = copy.copy(response)  # the group may have it in store for others
    others: list[Status] = []
    detail = problem
    for status in response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            detail = f"{status.status_detail} {problem}"
        else:
            others.append(status)
    response.status = [*others, Status(status_code=StatusCode.MISSING_INTERNAL_TOPICS, status_detail=detail)]
    return response


def _check_topics_allowed(topology: StreamsGroupHeartbeatRequest.Topology, context: Context) -> None:
    """Raise unless the client may see all topics that its topology names, and those that its patterns match now."""
    if context.broker.authorizer is None:
        return
    check_topology(topology)  # which sees to it that the patterns are few, and quick
    names = dict.fromkeys(_names(topology, context.broker.groups.cluster))
    if not all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        raise KafkaError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topology uses topics that the client may not describe."
        )


def _names(topology: StreamsGroupHeartbeatRequest.Topology, cluster: Cluster) -> Iterator[str]:
    for part in topology.subtopologies:
        yield from part.source_topics
        yield from part.repartition_sink_topics
        for topic in (*part.repartition_source_topics, *part.state_changelog_topics):
            yield topic.name
        for pattern in part.source_topic_regex:
            yield from cluster.matching(pattern)


def _refuse(code: ErrorCode) -> Response:
    return Response(error_code=code)
