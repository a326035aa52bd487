"""What requests to the share coordinator have in common: share partitions by topic, each with its own result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.reply import Reply, when_replied
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode

P = TypeVar("P")
T = TypeVar("T")
M = TypeVar("M")


def each_partition(
    request: Any,
    context: Context,
    kind: Callable[[ErrorCode, str], Any],
    submit: Callable[[Any, Any], Any],
    result: Callable[[Any, Any], P],
    of_topic: Callable[[UUID, list[P]], T],
    response: Callable[[list[T]], M],
) -> Slices[M | Reply[M]]:
    """Submits each partition of a request by itself, and answers when all are done.

    Only brokers may ask (CLUSTER_ACTION on the cluster). Without topics, with a topic without partitions or without a
    group, the answer is empty.

    Args:
        kind: makes a result of an error.
        submit: takes a topic and a partition of the request, and returns the coordinator's result or a `Reply`.
        result: makes a partition's part of the response.
        of_topic: makes a topic's part of it.
        response: makes all of it.
    """
    if not context.cluster_allowed(Operation.CLUSTER_ACTION):
        refused = kind(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name)

        def submit(topic: Any, place: Any) -> Any:
            return refused
    elif not request.group_id.strip() or not all(topic.partitions for topic in request.topics):
        return response([])
    topics: dict[UUID, dict[int, P]] = {}
    reply: Reply[M] = Reply()
    pending = 1

    def done() -> None:
        nonlocal pending
        pending -= 1
        if not pending:
            reply(response([of_topic(topic_id, list(parts.values())) for topic_id, parts in topics.items()]))

    for topic in request.topics:
        parts = topics.setdefault(topic.topic_id, {})
        for place in topic.partitions:
            pending += 1

            def receive(outcome: Any, place: Any = place, parts: dict[int, P] = parts) -> None:
                parts[place.partition] = result(place, outcome)
                done()

            when_replied(submit(topic, place), receive)
            yield
    done()
    return reply.value if reply.done else reply  # type: ignore[return-value]
