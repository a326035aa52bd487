"""DeleteTopics: deletes topics with their data, by name or id."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final
from uuid import UUID

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.broker.topics import Topic
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kohort.protocol.schema import NO_UUID

SERVED: Final = Served(DeleteTopicsRequest, versions=(1, 6))

QUOTA_EXCEEDED: Final = 5
"""First version in which a quota refuses topics rather than delay the next request."""

log = logging.getLogger("kohort.broker.admin")

TOPIC_DELETION_DISABLED: Final = 3
"""First version with the error of this name."""

Outcome = DeleteTopicsResponse.TopicResponse


def handle(request: DeleteTopicsRequest, context: Context) -> Slices[DeleteTopicsResponse]:
    """Deletes each topic on its own.

    A client that may not describe a topic learns neither the name of an id nor whether a name exists.
    """
    # Since v6 a topic has a name or an id; before, there were names only.
    requested = [(topic.name, topic.topic_id) for topic in request.topics] + [
        (name, NO_UUID) for name in request.topic_names
    ]
    if not context.broker.config.flag("delete.topic.enable"):
        return DeleteTopicsResponse(
            responses=[_disabled(name, topic_id, context.version) for name, topic_id in requested]
        )
    all_allowed = context.cluster_allowed(Operation.DELETE, audited=False)
    deleted: set[UUID] = set()
    outcomes = []
    for (name, topic_id), times in Counter(requested).items():
        yield
        outcome = _check_identity(name, topic_id, times)
        if outcome is None:
            found = (
                _find_by_id(topic_id, deleted, all_allowed, context)
                if name is None
                else (_find_by_name(name, all_allowed, context))
            )
            outcome = found if isinstance(found, Outcome) else (yield from _delete(found, deleted, context))
        outcomes.append(outcome)
    return DeleteTopicsResponse(responses=outcomes)


def _check_identity(name: str | None, topic_id: UUID, times: int) -> Outcome | None:
    """The refusal of a topic that isn't named by name or id, once; None if it is."""
    if name is None and topic_id == NO_UUID:
        return _failed(None, NO_UUID, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != NO_UUID:
        return _failed(name, topic_id, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if times > 1:
        what = "id" if name is None else "name"
        return _failed(name, topic_id, ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
    return None


def _find_by_id(topic_id: UUID, deleted: set[UUID], all_allowed: bool, context: Context) -> Topic | Outcome:
    topic = context.broker.topics.by_id(topic_id)
    if topic is None:
        if topic_id in deleted:
            return _duplicate(None, topic_id)
        return _failed(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if not all_allowed and not context.allowed(Operation.DELETE, ResourceType.TOPIC, topic.name):
        shown = topic.name if context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name) else None
        return _failed(shown, topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return topic


def _find_by_name(name: str, all_allowed: bool, context: Context) -> Topic | Outcome:
    topic = context.broker.topics.get(name)
    if not all_allowed:
        describable = context.allowed(Operation.DESCRIBE, ResourceType.TOPIC, name)
        deletable = context.allowed(Operation.DELETE, ResourceType.TOPIC, name)
        if not describable or (topic is not None and not deletable):
            return _failed(name, NO_UUID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        return _failed(name, NO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def _delete(topic: Topic, deleted: set[UUID], context: Context) -> Slices[Outcome]:
    if topic.internal:
        # Kafka allows to delete its coordinators' topics, which breaks the coordinators.
        detail = f"Topic '{topic.name}' is the broker's own and can't be deleted."
        return _failed(topic.name, topic.id, ErrorCode.INVALID_TOPIC_EXCEPTION, detail)
    try:
        context.mutate(len(topic.partitions), strict_since=QUOTA_EXCEEDED)
        yield from context.broker.topics.delete_in_slices(topic.name)
    except KafkaError as error:
        return _failed(topic.name, topic.id, error.code, error.detail)
    log.info("topic deleted topic=%s id=%s", topic.name, topic.id)
    deleted.add(topic.id)
    return Outcome(name=topic.name, topic_id=topic.id)


def _disabled(name: str | None, topic_id: UUID, version: int) -> Outcome:
    code = ErrorCode.INVALID_REQUEST if version < TOPIC_DELETION_DISABLED else ErrorCode.TOPIC_DELETION_DISABLED
    return _failed(name, topic_id, code, "Topic deletion is disabled: delete.topic.enable is false.")


def _duplicate(name: str | None, topic_id: UUID) -> Outcome:
    return _failed(name, topic_id, ErrorCode.INVALID_REQUEST, "The topic is named by its name and its id.")


def _failed(name: str | None, topic_id: UUID, code: ErrorCode, detail: str | None = None) -> Outcome:
    return Outcome(name=name, topic_id=topic_id, error_code=code, error_message=detail)
