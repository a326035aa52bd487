"""Fetch sessions (KIP-227): the broker keeps a client's partitions, so requests and responses carry only changes.

Sessions that are left behind go when there are too many of them, or of their partitions: the least used first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kohort.broker.bound import Bound
from kohort.broker.turns import Slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest

NO_SESSION: Final = 0
FULL: Final = 0
FINAL: Final = -1
_MAX_EPOCH: Final = 2**31 - 1

MAX_PARTITIONS: Final = 500_000
"""Partitions in all sessions, some 100 MB."""

PARTITIONS_A_SLICE: Final = 500

Key = tuple[str, UUID, int]
"""Topic name, topic id (one is empty, by API version), and partition."""


@dataclass(slots=True)
class FetchPartition:
    """A partition of a session, with what the last response said about it."""

    name: str
    topic_id: UUID
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int
    last_high_watermark: int = -1
    last_log_start_offset: int = -1
    last_error: int = 0

    def update(self, requested: FetchRequest.Topic.Partition) -> None:
        """Applies a newer request for the partition."""
        self.offset = requested.fetch_offset
        self.max_bytes = requested.partition_max_bytes
        self.leader_epoch = requested.current_leader_epoch
        self.last_epoch = requested.last_fetched_epoch


@dataclass(slots=True, eq=False)
class FetchSession:
    """The partitions that a client fetches, in the order they are read; a partition that returned data goes to the end.

    Attributes:
        id: 0 without a session.
        epoch: the epoch of the client's next request.
        by_id: whether topics are identified by id.
        incremental: whether the response carries changes only.
    """

    id: int = NO_SESSION
    epoch: int = 0
    partitions: dict[Key, FetchPartition] = field(default_factory=OrderedDict)
    last_used: int = 0
    by_id: bool = False
    incremental: bool = False

    def move_to_end(self, key: Key) -> None:
        """Lets the other partitions be read first next time."""
        partitions = self.partitions
        if isinstance(partitions, OrderedDict) and key in partitions:
            partitions.move_to_end(key)


class FetchSessions:
    """The cache of fetch sessions; when it is full, the oldest is evicted.

    Args:
        slots: the most sessions (`max.incremental.fetch.session.cache.slots`).
        new_id: returns a random positive int32.
        idle_ms: a session unused for this long may be evicted for another (min.incremental.fetch.session.eviction.ms).
    """

    def __init__(self, slots: int, new_id: Callable[[], int], idle_ms: int = 120_000) -> None:
        self.slots = slots
        self._new_id = new_id
        self._idle_ms = idle_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partitions: Bound[int] = Bound(MAX_PARTITIONS)  # of each session

    def __len__(self) -> int:
        return len(self._sessions)

    def partitions(self) -> int:
        """The number of partitions in all sessions."""
        return self._partitions.total

    def update(self, request: FetchRequest, now: int, *, by_id: bool = False) -> Slices[FetchSession]:
        """Returns the session of a request, updated by it in slices; a new one for a full fetch.

        Args:
            now: ms since 1970.
            by_id: whether it identifies topics by id. A client that reconnects may change that within a session.

        Raises:
            KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, or FETCH_SESSION_TOPIC_ID_ERROR if
                the session has topic names and the request ids, or the reverse: the client starts a new session.
        """
        if request.session_epoch in (FULL, FINAL):
            if request.session_id != NO_SESSION:
                self._drop(request.session_id)
            session = FetchSession(last_used=now, by_id=by_id)
            yield from _apply(session, request)
            if request.session_epoch == FULL and session.partitions:
                self._add(session, now)
            return session
        found = self._sessions.get(request.session_id)
        if found is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != found.epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if by_id != found.by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        found.epoch = 1 if found.epoch == _MAX_EPOCH else found.epoch + 1
        found.last_used = now
        found.incremental = True
        self._sessions.move_to_end(found.id)
        yield from _apply(found, request)
        if self._sessions.get(found.id) is found:  # it may have had to go meanwhile
            self._count(found)
        return found

    def forget(self, session: FetchSession) -> None:
        """Forgets a session that its client won't learn of."""
        if session.id != NO_SESSION:
            self._drop(session.id)

    def _add(self, session: FetchSession, now: int) -> None:
        if len(self._sessions) >= self.slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.last_used < self._idle_ms:
                return  # all are in use: this client sends full fetch requests
            self._drop(oldest.id)
        while session.id == NO_SESSION or session.id in self._sessions:
            session.id = self._new_id()
        session.epoch = 1
        self._sessions[session.id] = session
        self._count(session)

    def _drop(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)
        self._partitions.remove(session_id)

    def _count(self, session: FetchSession) -> None:
        for left_behind in self._partitions.put(session.id, len(session.partitions)):
            self._sessions.pop(left_behind, None)
        if self._partitions.total > self._partitions.limit:  # it is too large by itself: its client sends full requests
            self._drop(session.id)
            session.id = NO_SESSION


def _apply(session: FetchSession, request: FetchRequest) -> Slices[None]:
    done = 0
    for forgotten in request.forgotten_topics_data:
        for index in forgotten.partitions:
            session.partitions.pop((forgotten.topic, forgotten.topic_id, index), None)
            done += 1
            if done % PARTITIONS_A_SLICE == 0:
                yield
    for topic in request.topics:
        for requested in topic.partitions:
            done += 1
            if done % PARTITIONS_A_SLICE == 0:
                yield
            key = (topic.topic, topic.topic_id, requested.partition)
            partition = session.partitions.get(key)
            if partition is None:
                session.partitions[key] = FetchPartition(
                    topic.topic,
                    topic.topic_id,
                    requested.partition,
                    requested.fetch_offset,
                    requested.partition_max_bytes,
                    requested.current_leader_epoch,
                    requested.last_fetched_epoch,
                )
            else:
                partition.update(requested)
