"""Descriptions of consumer, share and streams groups: what is asked before one is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError


class DescribeRequest(Protocol):
    """What the requests of all kinds have."""

    group_ids: tuple[str, ...]
    include_authorized_operations: bool


class Description(Protocol):
    """What the descriptions of all kinds have."""

    error_code: int
    authorized_operations: int


D = TypeVar("D", bound=Description)


def describe_groups(
    kind: str,
    request: DescribeRequest,
    context: Context,
    *,
    made: Callable[..., D],
    described: Callable[[Any, str], D],
    topics: Callable[[D], Iterable[str]],
) -> Slices[list[D]]:
    """Describes each group once: repeated groups could make the response many times as large as the request.

    Args:
        made: makes a description from its fields.
        described: of a group in its shard; KafkaError where it isn't one of this kind.
        topics: the names of the topics that a description tells of, or that the client has to be allowed.
    """
    groups = context.broker.groups

    def failed(group_id: str, code: ErrorCode, detail: str | None = None) -> D:
        return made(group_id=group_id, error_code=code, error_message=detail)

    def describe(group_id: str) -> D:
        if not groups.offered(kind):
            return failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
        if not context.allowed(Operation.DESCRIBE, ResourceType.GROUP, group_id):
            return failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if not group_id:
            return failed(group_id, ErrorCode.INVALID_GROUP_ID)
        try:
            found = described(groups.entry(group_id).shard, group_id)
        except KafkaError as error:
            return failed(group_id, error.code, error.detail)
        if context.broker.authorizer is not None and not all(
            context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in set(topics(found))
        ):
            detail = "The group uses topics that the client may not describe."
            return failed(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, detail)
        if request.include_authorized_operations and not found.error_code:
            found.authorized_operations = context.operations(ResourceType.GROUP, group_id)
        return found

    return (yield from in_slices(describe, dict.fromkeys(request.group_ids)))
