"""StreamsGroupHeartbeat: a member of a streams group joins, stays or leaves, and gets its tasks (KIP-1071)."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from typing import Final

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply, map_reply, when_replied
from kohort.coordinator.modern.cluster import Cluster
from kohort.coordinator.streams.request_validation import check_topology
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.heartbeat_wishes import Wishes, wishes_of
from kohort.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kohort.streams.statuses import StatusCode

SERVED: Final = Served(StreamsGroupHeartbeatRequest, versions=(0, 1), max_items=ONE_STEP)

log = logging.getLogger("kohort.broker.streams")

Response = StreamsGroupHeartbeatResponse


def handle(request: StreamsGroupHeartbeatRequest, context: Context) -> Response | Reply[Response]:
    """Passes the heartbeat to the coordinator, and creates missing internal topics."""
    groups = context.broker.groups
    if not groups.offered("streams"):
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    if not context.allowed(Operation.READ, ResourceType.GROUP, request.group_id):
        return _refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.unknown_tags and (wishes := wishes_of(request.unknown_tags)) and wishes.max_wait_ms > 0:
        return _hold(request, wishes, context)
    if request.topology is not None:
        try:
            _check_topics_allowed(request.topology, context)
        except KafkaError as error:
            return HeartbeatResult.refused(error).response
        if not groups.placer.ready:
            # The first member waits for the process that places tasks, or would get its tasks a heartbeat later.
            reply: Reply[Response] = Reply()
            groups.placer.start(lambda: _submit_later(request, context, reply))
            return reply
    return _submit(request, context)


def _hold(request: StreamsGroupHeartbeatRequest, wishes: Wishes, context: Context) -> Response | Reply[Response]:
    """Answers when there is news for the member, which its next heartbeat brings."""
    session, groups = context.session, context.broker.groups
    if session.gone:  # nobody reads the answer
        return _refuse(ErrorCode.NETWORK_EXCEPTION)
    done: HeartbeatResult | Reply[HeartbeatResult] = groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.streams.hold(request, wishes, context.client, session, now, reply),
        lambda code: HeartbeatResult(_refuse(code)),
    )
    return map_reply(done, lambda result: result.response)


def _submit_later(request: StreamsGroupHeartbeatRequest, context: Context, reply: Reply[Response]) -> None:
    try:
        when_replied(_submit(request, context), reply)
    except Exception:
        log.exception("a join failed group=%s", shown(request.group_id))
        reply(_refuse(ErrorCode.UNKNOWN_SERVER_ERROR))


def _submit(request: StreamsGroupHeartbeatRequest, context: Context) -> Response | Reply[Response]:
    done = context.broker.groups.submit(
        request.group_id,
        lambda shard, now, reply: shard.streams.heartbeat(request, context.client, now, reply),
        lambda code: HeartbeatResult(_refuse(code)),
    )
    return map_reply(done, lambda result: _response(result, request, context))


def _response(result: HeartbeatResult, request: StreamsGroupHeartbeatRequest, context: Context) -> Response:
    """Notes the member's connection, creates missing internal topics, and adds problems to the response's status."""
    response = result.response
    if result.disconnect_timeout_ms >= 0:
        context.broker.groups.heard_over(
            context.session, request.group_id, request.member_id, result.disconnect_timeout_ms
        )
    if not result.missing_topics:
        return response
    problem = context.broker.groups.internal_topics.create(result.missing_topics, context.may_create_topic)
    if not problem:
        return response
    response = copy.copy(response)  # the group may keep the response for other members
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
    """Raises TOPIC_AUTHORIZATION_FAILED unless the client may describe all topics of its topology, matched ones too."""
    if context.broker.authorizer is None:
        return
    check_topology(topology)  # it limits the number of patterns and their cost
    names = dict.fromkeys(_topic_names(topology, context.broker.groups.cluster))
    if not all(context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        raise KafkaError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, "The topology uses topics that the client may not describe."
        )


def _topic_names(topology: StreamsGroupHeartbeatRequest.Topology, cluster: Cluster) -> Iterator[str]:
    for subtopology in topology.subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            yield topic.name
        for pattern in subtopology.source_topic_regex:
            yield from cluster.matching(pattern)


def _refuse(code: ErrorCode) -> Response:
    return Response(error_code=code)
