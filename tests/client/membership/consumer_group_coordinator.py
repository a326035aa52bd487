"""A small coordinator of one consumer group (KIP-848), for simulations: epochs, a target assignment, reconciliation."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
from typing import Any
from uuid import UUID

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

__all__ = ["ConsumerGroupCoordinator"]

Parts = set[tuple[UUID, int]]


@dataclass
class _Member:
    epoch: int = 0
    last_heartbeat: int = 0
    topics: frozenset[str] = frozenset()
    has: Parts = field(default_factory=set)
    """What it was given and hasn't given back."""
    sent: Parts | None = None


class ConsumerGroupCoordinator:
    """Partitions are dealt out in turn; none is given while another member may have it."""

    SESSION_MS = 6_000

    def __init__(self, topics: dict[str, tuple[UUID, int]]) -> None:
        self.topics = topics
        self.epoch = 0
        self.members: dict[str, _Member] = {}
        self.target: dict[str, Parts] = {}

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, now: int) -> ConsumerGroupHeartbeatResponse:
        self.expire(now)
        member = self.members.get(request.member_id)
        if request.member_epoch < 0:
            if member is None:
                return self._answer(ErrorCode.UNKNOWN_MEMBER_ID)
            self._remove(request.member_id)
            return self._answer(member_epoch=request.member_epoch)
        if request.member_epoch == 0:
            assert request.subscribed_topic_names is not None and request.topic_partitions == []
            member = self.members[request.member_id] = _Member(topics=frozenset(request.subscribed_topic_names))
            self._bump()
        elif member is None:
            return self._answer(ErrorCode.UNKNOWN_MEMBER_ID)
        elif request.member_epoch > member.epoch:
            return self._answer(ErrorCode.FENCED_MEMBER_EPOCH)
        elif request.member_epoch < member.epoch:
            # An answer was lost. The member must say all there is, and gets it again.
            assert request.topic_partitions is not None, "a member that missed an answer says everything"
        member.last_heartbeat = now
        names = request.subscribed_topic_names
        if names is not None and frozenset(names) != member.topics:
            member.topics = frozenset(names)
            self._bump()
        if request.topic_partitions is not None:
            owned = {(each.topic_id, number) for each in request.topic_partitions for number in each.partitions}
            assert owned <= member.has, "it owns what it wasn't given"
            # What it was given but doesn't name may be on its way to it; what it must give back isn't, any more.
            member.has -= member.has - owned - self.target[request.member_id]
        self._reconcile(request.member_id, member)
        # As in Kafka: only a heartbeat with all of this gets an unchanged assignment again.
        full = request.rebalance_timeout_ms >= 0 and request.topic_partitions is not None and names is not None
        return self._given(member, full=full)

    def _reconcile(self, member_id: str, member: _Member) -> None:
        target = self.target[member_id]
        if member.has - target:
            return
        member.epoch = self.epoch
        others: Parts = set().union(*(other.has for name, other in self.members.items() if name != member_id))
        member.has |= target - others

    def _given(self, member: _Member, *, full: bool) -> ConsumerGroupHeartbeatResponse:
        wanted = member.has & next(t for name, t in self.target.items() if self.members[name] is member)
        if wanted == member.sent and not full:
            return self._answer(member_epoch=member.epoch)
        member.sent = set(wanted)
        topics: dict[UUID, list[int]] = {}
        for topic_id, number in sorted(wanted):
            topics.setdefault(topic_id, []).append(number)
        given = [TopicPartitions(topic_id=topic_id, partitions=tuple(each)) for topic_id, each in topics.items()]
        assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=given)
        return self._answer(member_epoch=member.epoch, assignment=assignment)

    def _answer(self, error: ErrorCode = ErrorCode.NONE, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(error_code=error, heartbeat_interval_ms=500, **fields)

    def expire(self, now: int) -> None:
        for member_id in [
            name for name, member in self.members.items() if now - member.last_heartbeat > self.SESSION_MS
        ]:
            if self.members[member_id].last_heartbeat:
                self._remove(member_id)

    def _remove(self, member_id: str) -> None:
        del self.members[member_id]
        self._bump()

    def _bump(self) -> None:
        self.epoch += 1
        self.target = {name: set() for name in self.members}
        for topic, (topic_id, count) in self.topics.items():
            takers = [name for name, member in sorted(self.members.items()) if topic in member.topics]
            for number, taker in zip(range(count), cycle(takers), strict=False):
                self.target[taker].add((topic_id, number))
