"""What the leader of a classic streams group does: sees topics, creates internal ones, has the tasks placed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import UUID

from kohort.client.administration.request_router import RequestRouter
from kohort.client.administration.topics import Topics
from kohort.client.cluster import Cluster
from kohort.client.errors import ClosedError, ConnectionLostError, NoBrokerError, RequestTimeoutError
from kohort.client.streams.classic.leader import lead, topics_seen
from kohort.client.streams.classic.leader_memory import LeaderMemory
from kohort.client.streams.classic.led_group import GroupAssignment, JoinedMember
from kohort.client.streams.classic.membership import ClassicMembership
from kohort.client.streams.classic.phases import Phase
from kohort.client.streams.classic.settings import ClassicSettings
from kohort.client.streams_internal_topics import InternalTopics
from kohort.client.types import TopicInfo
from kohort.protocol.errors import KafkaError
from kohort.streams.patterns import matching

log = logging.getLogger(__name__)

_CREATE_WITHIN_MS: Final = 10_000
_LOOK_AGAIN_S: Final = 10.0
_UNREACHABLE: Final = (KafkaError, NoBrokerError, ConnectionLostError, RequestTimeoutError)
_ROUNDS: Final = 4
"""How often the tasks are placed at most, while topics turn out to be needed or are created."""
_LOOK_MS: Final = 5_000
"""Beside every change that is heard of, how often the leader looks whether topics have changed."""


class KnownTopics:
    """The topics that there are, as `lead` sees them: it stays as it is while others change.

    Attributes:
        unknown: names that were asked for, of which nothing is known.
    """

    def __init__(self, topics: Mapping[str, TopicInfo], known: frozenset[str] | None) -> None:
        self._topics, self._known = dict(topics), known
        self.unknown: set[str] = set()

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None if there is none."""
        found = self._find(topic)
        return None if found is None else len(found.partitions)

    def topic_id(self, topic: str) -> UUID | None:
        """A topic's id; None if there is none, the same one for all that brokers give none."""
        found = self._find(topic)
        return None if found is None else found.topic_id

    def _find(self, topic: str) -> TopicInfo | None:
        if self._known is not None and topic not in self._known:
            self.unknown.add(topic)
        return self._topics.get(topic)

    def matching(self, pattern: str) -> Sequence[str]:
        """Names of the topics that a pattern matches, sorted; none if it can't be used. No internal topics."""
        try:
            return matching(pattern, (name for name, topic in self._topics.items() if not topic.internal))
        except ValueError:
            return ()


class StreamsGroupLeader:
    """Places the tasks when the member is to, and has the group rebalance when topics have changed.

    Args:
        cluster: of the member; its topics are followed.
        rebalance_wanted: called when the member has something to send.
    """

    def __init__(
        self,
        cluster: Cluster,
        membership: ClassicMembership,
        settings: ClassicSettings,
        *,
        rebalance_wanted: Callable[[], None],
    ) -> None:
        self._cluster, self._membership, self._settings = cluster, membership, settings
        self._rebalance_wanted = rebalance_wanted
        # The others wait while topics are created, and the session of the member runs.
        self._within_ms = min(_CREATE_WITHIN_MS, settings.session_timeout_ms // 3)
        self._topics = InternalTopics(Topics(RequestRouter(cluster, self._within_ms)), membership)
        self._memory = LeaderMemory()
        self._seen: Mapping[str, object] | None = None  # what the group's assignment depends on
        self._topology = membership.settings.topology
        self._rebalance_at: float | None = None  # topics couldn't be created, or the leader knows of none that lack
        self._needed = set(membership.settings.topology.required_topics)

    @property
    def due(self) -> bool:
        """Whether the member is to place the tasks of its group now."""
        return self._membership.subscriptions is not None

    async def place(self, now: Callable[[], int]) -> None:
        """Places the tasks, and hands the assignments to the member.

        If topics can't be looked up, it is still due.
        """
        try:
            await self._place(now)
        except _UNREACHABLE as error:
            log.warning("%s: tasks can't be placed, since topics can't be looked up: %s", self._membership, error)

    async def _place(self, now: Callable[[], int]) -> None:
        membership = self._membership
        members = [
            JoinedMember(member_id, membership.instances.get(member_id), subscription)
            for member_id, subscription in (membership.subscriptions or {}).items()
        ]
        deadline = now() + self._within_ms
        answer = await self._placed(members)
        for message in answer.messages:
            log.warning("%s: %s", membership, message)
        tried: set[str] = set()
        failed: set[str] = set()
        while answer.missing and self.due and now() < deadline:
            names = {topic.name for topic in answer.missing}
            if names <= failed:
                break
            if names <= tried and not await self._cluster.wait_for_change(max(1, deadline - now())):
                break
            new = [topic for topic in answer.missing if topic.name not in tried]
            failed |= await self._topics.create(new, deadline, now)
            tried |= names
            answer = await self._placed(members)
        if not self.due:
            return  # the member has left meanwhile
        self._memory.keep(membership.epoch, answer.static)
        self._seen, self._topology = answer.seen, answer.topology
        self._rebalance_at = self._later() if answer.missing else None
        membership.placed(answer.assignments, now())

    async def _placed(self, members: Sequence[JoinedMember]) -> GroupAssignment:
        """Has the tasks placed by the topics that there are now."""
        for _ in range(_ROUNDS):
            topics = await self._look()
            # It computes for a while if the group is large, and the loop has other work.
            answer = await asyncio.to_thread(
                lead,
                members,
                self._membership.member_id,
                self._membership.settings.topology,
                topics,
                self._settings,
                self._memory.recalled(self._membership.epoch),
            )
            self._needed = set(answer.topology.required_topics)
            if not topics.unknown and (not answer.topology.source_patterns or self._follows_all):
                break
            self._needed |= topics.unknown
            self._follow(answer)
        return answer

    @property
    def _follows_all(self) -> bool:
        return self._cluster.follows_all

    def _follow(self, answer: GroupAssignment) -> None:
        if answer.topology.source_patterns:
            self._cluster.follow_all()
        else:
            self._cluster.follow(self._needed)

    async def _look(self) -> KnownTopics:
        """Sees the topics as they are now."""
        self._cluster.follow(self._needed)
        await self._cluster.refresh(timeout_ms=self._within_ms)
        return self._known()

    def _known(self) -> KnownTopics:
        return KnownTopics(self._cluster.info.topics, None if self._follows_all else frozenset(self._needed))

    async def watch(self) -> None:
        """Has the group rebalance when topics have changed on which its assignment depends. Runs until cancelled."""
        while True:
            try:
                await self._cluster.wait_for_change(_LOOK_MS)
                self._look_at_changes()
            except ClosedError:
                return
            except Exception:
                log.exception("%s: topics can't be watched; trying again", self._membership)
                await asyncio.sleep(_LOOK_MS / 1000)

    def _look_at_changes(self) -> None:
        membership = self._membership
        if not membership.leads:
            self._seen = self._rebalance_at = None
        elif membership.phase is Phase.SETTLED:
            self._compare()

    def _compare(self) -> None:
        if self._seen is None:
            # A static member is back, and its assignment is of topics that nobody has seen but the process before.
            self._rebalance("the leader is back")
        elif topics_seen(self._topology, self._known()) != self._seen:
            self._rebalance("topics have changed")
        elif self._rebalance_at is not None and asyncio.get_running_loop().time() >= self._rebalance_at:
            self._rebalance("topics may be there now")

    @staticmethod
    def _later() -> float:
        return asyncio.get_running_loop().time() + _LOOK_AGAIN_S

    def _rebalance(self, reason: str) -> None:
        log.info("%s: %s; the group rebalances", self._membership, reason)
        self._rebalance_at = self._later()
        self._membership.rebalance(reason)
        self._rebalance_wanted()
