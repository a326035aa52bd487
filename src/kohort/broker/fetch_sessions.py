"""Fetch sessions (KIP-227): what a client fetches is remembered, so that it sends, and gets, only what changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest

__all__ = ["FetchPartition", "FetchSession", "FetchSessions"]

NO_SESSION: Final = 0
FULL: Final = 0
FINAL: Final = -1
_MAX_EPOCH: Final = 2**31 - 1

Key = tuple[str, UUID, int]
"""Topic by name or id, whichever the version has (the other one is empty), and partition."""


@dataclass(slots=True)
class FetchPartition:
    """A partition that is fetched, and what the client was told of it last."""

    name: str
    topic_id: UUID
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int
    told_high_watermark: int = -1
    told_start_offset: int = -1
    told_error: int = 0

    def update(self, asked: FetchRequest.Topic.Partition) -> None:
        """Take over what the client asks now."""
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.last_epoch = asked.last_fetched_epoch


@dataclass(slots=True, eq=False)
class FetchSession:
    """What one client fetches, in the order in which it is served; a partition that had data goes to the end.

    Attributes:
        id: 0 if nothing is remembered.
        epoch: the epoch that the client's next request has to have.
        by_id: whether its topics are named by id.
        incremental: whether the answer tells only what has changed.
    """

    id: int = NO_SESSION
    epoch: int = 0
    partitions: dict[Key, FetchPartition] = field(default_factory=OrderedDict)
    last_used: int = 0
    by_id: bool = False
    incremental: bool = False

    def served(self, key: Key) -> None:
        """Let the others come first next time."""
        partitions = self.partitions
        if isinstance(partitions, OrderedDict) and key in partitions:
            partitions.move_to_end(key)


class FetchSessions:
    """The sessions that are remembered; the oldest goes when there are too many.

    Args:
        slots: how many (`max.incremental.fetch.session.cache.slots`).
        new_id: gives a random positive int32.
        idle_ms: a session this long unused may be forgotten for another (min.incremental.fetch.session.eviction.ms).
    """

    def __init__(self, slots: int, new_id: Callable[[], int], idle_ms: int = 120_000) -> None:
        self.slots = slots
        self._new_id = new_id
        self._idle_ms = idle_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> int:
        """How many partitions all sessions remember."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def take(self, request: FetchRequest, now: int, *, by_id: bool = False) -> FetchSession:
        """The session that a request belongs to, brought up to date by it.

        Args:
            request: the request.
            now: ms since 1970.
            by_id: whether it names topics by id. A client that reconnects may do so in the middle of a session.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR, when
                a session has topics by name and now by id, or the other way round: the client starts anew.
        """
        if request.session_epoch in (FULL, FINAL):
            if request.session_id != NO_SESSION:
                self._sessions.pop(request.session_id, None)
            session = FetchSession(last_used=now, by_id=by_id)
            _apply(session, request)
            if request.session_epoch == FULL and session.partitions:
                self._remember(session, now)
            return session
        known = self._sessions.get(request.session_id)
        if known is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != known.epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if by_id != known.by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        known.epoch = 1 if known.epoch == _MAX_EPOCH else known.epoch + 1
        known.last_used = now
        known.incremental = True
        self._sessions.move_to_end(known.id)
        _apply(known, request)
        return known

    def _remember(self, session: FetchSession, now: int) -> None:
        if len(self._sessions) >= self.slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.last_used < self._idle_ms:
                return  # all are in use: this client sends whole requests
            del self._sessions[oldest.id]
        while session.id == NO_SESSION or session.id in self._sessions:
            session.id = self._new_id()
        session.epoch = 1
        self._sessions[session.id] = session


def _apply(session: FetchSession, request: FetchRequest) -> None:
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            session.partitions.pop((forgotten.topic, forgotten.topic_id, index), None)
    for topic in request.topics:
        for asked in topic.partitions:
            key = (topic.topic, topic.topic_id, asked.partition)
            partition = session.partitions.get(key)
            if partition is None:
                session.partitions[key] = FetchPartition(
                    topic.topic,
                    topic.topic_id,
                    asked.partition,
                    asked.fetch_offset,
                    asked.partition_max_bytes,
                    asked.current_leader_epoch,
                    asked.last_fetched_epoch,
                )
            else:
                partition.update(asked)
