"""What a member of a streams group and its coordinator agree on beyond Kafka: tagged fields of this project's own.

A member puts `Wishes` into its StreamsGroupHeartbeat; a coordinator that knows them answers with a `Grant` under the
same tag. A member without a grant knows that it has to do without. Other brokers and clients pass over tagged fields
that they don't know (KIP-482). The content is JSON: a list of what the tuple has, in at most 256 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["NO_TIMEOUT", "WISHES_TAG", "Grant", "Wishes", "grant_of", "wishes_of"]

WISHES_TAG: Final = 10_001

NO_TIMEOUT: Final = -1
"""A disconnect timeout that never ends: the session timeout alone counts."""

_INT32: Final = 2**31

_MAX_BYTES: Final = 256
"""The longest content that is read: a request may be very large, and wishes are kept for each member."""


class Wishes(NamedTuple):
    """What a member asks for.

    Attributes:
        disconnect_timeout_ms: how long its connection may be broken before it counts as dead; below 0 for ever.
        max_wait_ms: how long this heartbeat may be held, in ms. One that may be held changes nothing, and is answered
            when the next heartbeat would bring news. 0: it is a heartbeat like any other.
        status_codes: the statuses that the member knows; with one that may be held.
    """

    disconnect_timeout_ms: int = NO_TIMEOUT
    max_wait_ms: int = 0
    status_codes: tuple[int, ...] = ()

    def tags(self) -> dict[int, bytes]:
        """The tagged fields of the request."""
        return _tags((self.disconnect_timeout_ms, self.max_wait_ms, sorted(self.status_codes)))


class Grant(NamedTuple):
    """What a coordinator answers.

    Attributes:
        disconnect_timeout_ms: the timeout in force; below 0 if there is none.
        max_wait_ms: how long it holds a heartbeat at most, in ms.
        news: whether the member's next heartbeat brings news; in the answer to one that was held.
    """

    disconnect_timeout_ms: int = NO_TIMEOUT
    max_wait_ms: int = 0
    news: bool = False

    def tags(self) -> dict[int, bytes]:
        """The tagged fields of the response."""
        return _tags((self.disconnect_timeout_ms, self.max_wait_ms, int(self.news)))


def wishes_of(tags: Mapping[int, bytes] | None) -> Wishes | None:
    """The wishes among a request's tagged fields; None without any, or if the content is something else."""
    match _content(tags):
        case [int(disconnect_timeout_ms), int(max_wait_ms), [*listed]]:
            codes = tuple(code for code in listed if isinstance(code, int))
            if len(codes) == len(listed) and abs(disconnect_timeout_ms) < _INT32 and 0 <= max_wait_ms < _INT32:
                return Wishes(disconnect_timeout_ms, max_wait_ms, codes)
    return None


def grant_of(tags: Mapping[int, bytes] | None) -> Grant | None:
    """The grant among a response's tagged fields; None without any, or if the content is something else."""
    match _content(tags):
        case [int(disconnect_timeout_ms), int(max_wait_ms), int(news)]:
            return Grant(disconnect_timeout_ms, max_wait_ms, bool(news))
    return None


def _tags(content: object) -> dict[int, bytes]:
    return {WISHES_TAG: json.dumps(content, separators=(",", ":")).encode()}


def _content(tags: Mapping[int, bytes] | None) -> object:
    raw = tags.get(WISHES_TAG) if tags else None
    if raw is None or len(raw) > _MAX_BYTES:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
