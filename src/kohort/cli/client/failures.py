"""What goes wrong between a command and the brokers, in words that help."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from kohort.client.errors import ClientError
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = ["explain", "no_such"]

_ADVICE: Final[dict[ErrorCode, str]] = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "there is a topic of that name",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition; 'kohort topics list' shows what is",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic has been deleted, or made anew",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group; 'kohort groups list' shows what is",
    ErrorCode.NON_EMPTY_GROUP: "the group has members; stop them first",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "the group's members read that topic; stop them first",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that with the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that with the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the cluster doesn't let this user do that with the transaction",
    ErrorCode.LEADER_NOT_AVAILABLE: "the partition has no leader: its brokers are down, or just starting",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has no such member; 'kohort groups describe' shows who is",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the partition has no such offset",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
}
"""What a code means to somebody at a terminal, where the broker says nothing better."""


def no_such(kind: str, name: str, there: Iterable[str]) -> str:
    """That there is no topic, or group, of that name, and which was meant, perhaps."""
    known = {each.casefold(): each for each in there}
    near = [known[each] for each in get_close_matches(name.casefold(), known, n=3, cutoff=0.6)]
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else f" ('kohort {kind}s list' shows what is)"
    return f"there is no {kind} {name!r}{hint}"


def explain(error: ClientError | KafkaError) -> str:
    """The error as one who gave the command can understand it."""
    if not isinstance(error, KafkaError):
        return str(error) or type(error).__name__
    said = error.detail or _ADVICE.get(error.code)
    return f"{said.rstrip('.')} ({error.code.name})" if said else str(error)
