"""A broker with one share group and one topic of one partition, which fails as a test wants it to.

It is strict where Apache Kafka is: epochs of sessions, sessions that end with their connection, locks, and requests
that are taken as a whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from kohort.client.types import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kohort.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.protocol.records.rows import encode_rows
from tests.client.support.scripted_broker import Asked, HangUpError, ScriptedBroker

TOPIC, TOPIC_ID = "t", UUID(int=7)
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

_Fetched = ShareFetchResponse.TopicResponse
_Acknowledged = ShareAcknowledgeResponse.TopicResponse
_Range = tuple[int, int, tuple[int, ...]]
_LIMITED: dict[str, type[Request]] = {"acknowledge": ShareAcknowledgeRequest, "fetch": ShareFetchRequest}


class ShareBroker:
    """A scripted broker with its share partition.

    Args:
        count: records in its log; batches of `batch`.
        lock_ms: what it says of its locks; they end when a test says so (`end_locks`).
        versions: the versions of "acknowledge" and "fetch" that it has, if not all.

    Attributes:
        accepted, archived: offsets that are done; `taken` has each acknowledgement that counted, in order.
        deliveries: by offset.
        fetch_errors, acknowledge_errors, session_errors: the next errors to answer with, of a partition or a request;
            0 for none, None to hang up.
        before_heartbeat: called before the next heartbeat is answered, and then forgotten.
        assigned: whether members have the partition; told with the next heartbeat.
        leader: the node that leads, and the leader's epoch.
        hold: how long it holds a fetch back that has nothing, in seconds.
    """

    def __init__(
        self, count: int, batch: int = 10, *, lock_ms: int = 30_000, node_id: int = 1, **versions: tuple[int, int]
    ):
        self.scripted = ScriptedBroker(
            {
                FindCoordinatorRequest: self._coordinator,
                ShareGroupHeartbeatRequest: self._heartbeat,
                ShareFetchRequest: self._fetch,
                ShareAcknowledgeRequest: self._acknowledge,
            },
            versions={_LIMITED[name]: each for name, each in versions.items()},
            node_id=node_id,
        )
        self.batches = [(first, _batch(first, min(batch, count - first))) for first in range(0, count, batch)]
        self.size, self.count, self.lock_ms = batch, count, lock_ms
        self.accepted: set[int] = set()
        self.archived: set[int] = set()
        self.locked: set[int] = set()
        self.taken: list[tuple[int, int, int]] = []
        self.deliveries: dict[int, int] = dict.fromkeys(range(count), 0)
        self.fetch_errors: deque[int | None] = deque()
        self.acknowledge_errors: deque[int | None] = deque()
        self.session_errors: deque[int | None] = deque()
        self.heartbeat_errors: deque[int] = deque()
        self.before_heartbeat: Callable[[], Awaitable[None]] | None = None
        self.bad_offsets: set[int] = set()
        self.assigned = True
        self.leader = (node_id, 1)
        self.other: Broker | None = None
        self.hold = 0.02
        self._told = True
        self._epoch = 0
        self._connection = 0

    # What tests do.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ShareBroker]:
        """Listens, with its topic."""
        async with self.scripted:
            self.lead(*self.leader)
            yield self

    def lead(self, node_id: int, epoch: int) -> None:
        """Says who leads the partition."""
        self.leader = node_id, epoch
        self.scripted.topics[TOPIC] = MetadataResponse.Topic(
            name=TOPIC,
            topic_id=TOPIC_ID,
            partitions=[
                MetadataResponse.Topic.Partition(
                    partition_index=0, leader_id=node_id, leader_epoch=epoch, replica_nodes=(1,), isr_nodes=(1,)
                )
            ],
        )

    def end_locks(self) -> None:
        """All locks end."""
        self.locked.clear()

    # Answers.

    def _coordinator(self, asked: Asked) -> FindCoordinatorResponse:
        at = self.scripted.broker
        each = FindCoordinatorResponse.Coordinator(key="g", node_id=at.node_id, host=at.host, port=at.port)
        return FindCoordinatorResponse(coordinators=[each])

    async def _heartbeat(self, asked: Asked) -> ShareGroupHeartbeatResponse:
        request = asked.request
        assert isinstance(request, ShareGroupHeartbeatRequest)
        if self.before_heartbeat is not None:
            before, self.before_heartbeat = self.before_heartbeat, None
            await before()
        if self.heartbeat_errors and request.member_epoch >= 0:
            return ShareGroupHeartbeatResponse(error_code=self.heartbeat_errors.popleft(), heartbeat_interval_ms=20)
        shares = [TopicPartitions(topic_id=TOPIC_ID, partitions=(0,))] if self.assigned else []
        news, self._told = self.assigned != self._told, self.assigned
        return ShareGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=max(1, request.member_epoch) if request.member_epoch >= 0 else -1,
            heartbeat_interval_ms=20,
            assignment=ShareGroupHeartbeatResponse.Assignment(topic_partitions=shares)
            if request.member_epoch == 0 or news
            else None,
        )

    def _session(self, epoch: int, connection: int, *, fetch: bool) -> int:
        """Counts a request; the error of the whole of it, or 0."""
        if self.session_errors:
            code = self.session_errors.popleft()
            if code is None:
                self._end_session()
                raise HangUpError
            if code:
                self._end_session()
                return code
        if epoch == 0 and fetch:
            self._end_session()
            self._epoch, self._connection = 1, connection
            return 0
        if connection != self._connection or not self._epoch:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == -1:
            self._epoch = 0
        elif epoch != self._epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        else:
            self._epoch += 1
        return 0

    def _end_session(self) -> None:
        self._epoch = 0
        self.locked.clear()

    def _take(self, ranges: Sequence[_Range]) -> int:
        """Takes acknowledgements, all or none."""
        if self.acknowledge_errors:
            code = self.acknowledge_errors.popleft()
            if code is None:
                self._end_session()
                raise HangUpError
            if code:
                return code
        offsets = [offset for first, last, _ in ranges for offset in range(first, last + 1)]
        assert offsets == sorted(set(offsets)), "in order, each once"
        if not self.locked.issuperset(offsets) or self.bad_offsets.intersection(offsets):
            return ErrorCode.INVALID_RECORD_STATE
        for first, last, (kind,) in ranges:
            self.taken.append((first, last, kind))
            span = set(range(first, last + 1))
            if kind == RENEW:
                continue
            self.locked -= span
            if kind == ACCEPT:
                assert not self.accepted & span, "accepted twice"
                self.accepted |= span
            elif kind != RELEASE:
                self.archived |= span
        return 0

    async def _fetch(self, asked: Asked) -> ShareFetchResponse:
        request = asked.request
        assert isinstance(request, ShareFetchRequest)
        if code := self._session(request.share_session_epoch, asked.connection, fetch=True):
            return ShareFetchResponse(error_code=code)
        part = _Fetched.Partition(partition_index=0)
        named = [each for topic in request.topics for each in topic.partitions]
        acknowledged = [
            (batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for each in named
            for batch in each.acknowledgement_batches
        ]
        answers = False
        if acknowledged:
            assert request.share_session_epoch > 0
            part.acknowledge_error_code, answers = self._take(acknowledged), True
        forgotten = bool(request.forgotten_topics_data)
        failure = self.fetch_errors.popleft() if self.fetch_errors else 0
        if failure is None:
            self._end_session()
            raise HangUpError
        if failure or self.leader[0] != self.scripted.node_id:
            part.error_code = failure or ErrorCode.NOT_LEADER_OR_FOLLOWER
            part.current_leader = _Fetched.Partition.CurrentLeader(
                leader_id=self.leader[0], leader_epoch=self.leader[1]
            )
            answers = True
        elif not forgotten:
            answers |= self._acquire(part, request.max_records)
        endpoints = []
        if self.other is not None:
            kind = ShareFetchResponse.NodeEndpoint
            endpoints = [kind(node_id=self.other.node_id, host=self.other.host, port=self.other.port, rack=None)]
        if not answers:
            await asyncio.sleep(self.hold)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self.lock_ms,
            responses=[_Fetched(topic_id=TOPIC_ID, partitions=[part])] if answers else [],
            node_endpoints=endpoints,
        )

    def _acquire(self, part: _Fetched.Partition, most: int) -> bool:
        free = [
            offset
            for offset in range(self.count)
            if offset not in self.accepted and offset not in self.archived and offset not in self.locked
        ][:most]
        if not free:
            return False
        self.locked.update(free)
        for offset in free:
            self.deliveries[offset] += 1
        first, last = free[0] // self.size * self.size, free[-1]
        part.records = b"".join(data for base, data in self.batches if first <= base <= last)
        part.acquired_records = [
            _Fetched.Partition.AcquiredRecord(
                first_offset=offset, last_offset=offset, delivery_count=self.deliveries[offset]
            )
            for offset in free
        ]
        return True

    def _acknowledge(self, asked: Asked) -> ShareAcknowledgeResponse:
        request = asked.request
        assert isinstance(request, ShareAcknowledgeRequest)
        epoch = request.share_session_epoch
        if code := self._session(epoch, asked.connection, fetch=False):
            return ShareAcknowledgeResponse(error_code=code)
        parts = []
        for each in (partition for topic in request.topics for partition in topic.partitions):
            code = self._take(
                [(b.first_offset, b.last_offset, b.acknowledge_types) for b in each.acknowledgement_batches]
            )
            parts.append(_Acknowledged.Partition(partition_index=0, error_code=code))
        if epoch == -1:
            self.locked.clear()
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=self.lock_ms,
            responses=[_Acknowledged(topic_id=TOPIC_ID, partitions=parts)] if parts else [],
        )


def _batch(first: int, size: int) -> bytes:
    values = [b"%d" % number for number in range(first, first + size)]
    return bytes(encode_rows([1] * size, [None] * size, values, [()] * size, base_offset=first))
