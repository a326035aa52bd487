"""Texts of client errors, with advice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kohort.client.errors import ClientError
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.similar_names import did_you_mean

_ADVICE: Final[dict[ErrorCode, str]] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "there is a topic of that name",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition; see 'kohort topics list'",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic has been deleted, or recreated",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group; see 'kohort groups list'",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop them first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group's members read that topic; stop them first",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that with the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that with the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that with the transaction",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader: its brokers are down, or just starting",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has no such member; see 'kohort groups describe'",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the partition has no such offset",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
}
"""The text of a code, where the broker's answer has none."""


def not_found(kind: str, name: str, existing: Iterable[str]) -> str:
    """The error for a topic or group that doesn't exist, with similar names."""
    meant = did_you_mean(name, existing)
    return f"there is no {kind} {name!r}" + (f"; {meant}" if meant else f" (see 'kohort {kind}s list')")


def explain(error: ClientError | KafkaError) -> str:
    """The error's text, or advice, with the name of its code."""
    if not isinstance(error, KafkaError):
        return str(error) or type(error).__name__
    text = error.detail or _ADVICE.get(error.code)
    return f"{text.rstrip('.')} ({error.code.name})" if text else str(error)
