"""The share partitions of this broker: by group and partition, from the first fetch until they are out of use.

A share partition goes when its group has no sessions left, when group or topic are deleted, and when its state is of
another epoch; the next fetch loads it again. What is in flight is bounded for each
(`share.partition.max.record.locks`), and so are the sessions (`group.share.max.share.sessions`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from kohort.broker.config import Settings
from kohort.broker.metrics.sources import ShareInFlight
from kohort.broker.share.counters import ShareCounters
from kohort.broker.share.dead_letters import DeadLetterQueue
from kohort.broker.share.group_configs import ShareGroupConfigs
from kohort.broker.share.hosted_partition import HostedSharePartition, Persister, Status
from kohort.broker.share.offset_reset import StartOffsets
from kohort.broker.share.sessions import PartitionKey, ShareSession, ShareSessions
from kohort.broker.topics import ConfigResource, Partition, Topic
from kohort.coordinator.purgatory import Purgatory
from kohort.coordinator.share_partition import AcknowledgeType
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode


class SharePartitions:
    """Share partitions, their sessions, and the fetches that wait for them.

    Args:
        clock: ms since 1970.

    Attributes:
        sessions: of the groups' members.
        configs: the groups' settings.
        fetches: the share fetches that wait, by share partition and by log.
    """

    def __init__(
        self,
        persister: Persister,
        start_offsets: StartOffsets,
        sessions: ShareSessions,
        configs: ShareGroupConfigs,
        dead_letters: DeadLetterQueue,
        wheel: TimingWheel,
        clock: Callable[[], int],
    ) -> None:
        self.sessions = sessions
        self.configs = configs
        self.dead_letters = dead_letters
        self.fetches = Purgatory("share fetch", wheel)
        self.counters = ShareCounters()
        self._persister = persister
        self._start_offsets = start_offsets
        self._wheel = wheel
        self._clock = clock
        self._groups: dict[str, dict[PartitionKey, HostedSharePartition]] = {}
        self._to_check: dict[HostedSharePartition, None] = {}  # those that have changed, in order
        self._checks = False  # somebody looks at them, or will

    def __iter__(self) -> Iterator[HostedSharePartition]:
        for hosted in self._groups.values():
            yield from hosted.values()

    def of_group(self, group_id: str) -> list[HostedSharePartition]:
        """The group's share partitions that are in use."""
        return list(self._groups.get(group_id, {}).values())

    def get(self, group_id: str, key: PartitionKey) -> HostedSharePartition | None:
        return self._groups.get(group_id, {}).get(key)

    def load(self, group_id: str, partition: Partition) -> HostedSharePartition:
        """A share partition for a fetch, which may still be loading, or have failed."""
        key = partition.topic.id, partition.index
        found = self.get(group_id, key)
        if found is None:
            found = self._groups.setdefault(group_id, {})[key] = HostedSharePartition(
                group_id,
                partition,
                settings=lambda: self.configs.of(group_id),
                persister=self._persister,
                start_offsets=self._start_offsets,
                write_dead_letters=self.dead_letters.write,
                wheel=self._wheel,
                clock=self._clock,
                changed=self._changed,
            )
            found.load()
        found.revive()
        return found

    # Sessions

    def release(self, group_id: str, member_id: str) -> None:
        """Ends a member's session, and makes what it holds available again.

        Its group does so when it misses its heartbeats, but not when it leaves: it may still acknowledge what it holds.
        """
        session = self.sessions.remove(group_id, member_id)
        if session is not None:
            self._release(session)

    def close(self, session: ShareSession) -> None:
        """Ends a session as `release` does, unless the member has opened another meanwhile."""
        if self.sessions.is_open(session):
            self.release(session.group_id, session.member_id)

    def disconnected(self, connection: Hashable) -> None:
        """Ends the sessions that a connection opened."""
        for session in self.sessions.disconnected(connection):
            self.counters.evicted_sessions += 1
            self._release(session)

    def _release(self, session: ShareSession) -> None:
        """Releases what a session's member holds, of partitions that aren't in the session any more, too: nobody else
        would get that until its locks expire. A group without sessions needs no share partitions.
        """
        for hosted in self.of_group(session.group_id):
            hosted.release(session.member_id)
        if not self.sessions.has_members(session.group_id):
            for hosted in self.of_group(session.group_id):
                hosted.retire()

    # Out of use

    def evict(self, group_id: str, error: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND) -> None:
        """Ends the use of a group's share partitions: it is deleted, it has no members, or its offsets are altered."""
        with self._together():
            for hosted in self.of_group(group_id):
                hosted.fence(error)

    def evict_topic(self, topic: Topic) -> None:
        """Ends the use of a deleted topic's share partitions."""
        with self._together():
            for group_id in list(self._groups):
                for partition in topic.partitions:
                    hosted = self.get(group_id, (topic.id, partition.index))
                    if hosted is not None:
                        hosted.fence(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def evict_partition(self, group_id: str, key: PartitionKey) -> None:
        """Ends the use of a share partition whose state was initialized anew, or deleted."""
        hosted = self.get(group_id, key)
        if hosted is not None:
            hosted.fence(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def stop(self) -> None:
        """Sharing is over (share.version is 0 now): sessions and share partitions go."""
        self.sessions.clear()
        for group_id in list(self._groups):
            self.evict(group_id, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # Configuration

    def configure(self, settings: Settings) -> None:
        """Applies a new broker configuration."""
        self.sessions.limit = settings.int("group.share.max.share.sessions")
        self.configs.configure(settings)

    def config_changed(self, kind: ConfigResource, name: str) -> None:
        if kind is ConfigResource.GROUP:
            self.configs.configure_group(name)

    # Metrics

    def totals(self) -> dict[str, int]:
        counters, letters = self.counters, self.dead_letters
        return {
            "kohort_share_records_acquired": counters.acquired,
            "kohort_share_acknowledgement_failures": counters.failed_acknowledgements,
            "kohort_share_fetch_failures": counters.failed_fetches,
            "kohort_share_sessions_evicted": counters.evicted_sessions,
            "kohort_share_dead_letters": letters.written,
            "kohort_share_dead_letter_failures": letters.failed,
        }

    def acknowledged(self) -> dict[str, int]:
        """Records by how they were acknowledged."""
        return {kind.name.lower(): count for kind, count in zip(AcknowledgeType, self.counters.by_type, strict=True)}

    def in_flight(self) -> Iterator[ShareInFlight]:
        for hosted in self:
            if hosted.machine is not None:
                place = hosted.partition
                machine = hosted.machine
                yield ShareInFlight(
                    hosted.group_id, place.topic.name, place.index, machine.in_flight_records, machine.in_flight_batches
                )

    def open_sessions(self) -> int:
        return len(self.sessions)

    def delayed_fetches(self) -> int:
        return self.fetches.delayed

    def _changed(self, hosted: HostedSharePartition) -> None:
        """Drops what is out of use, and lets fetches look for records that are available now."""
        if hosted.status in (Status.FAILED, Status.FENCED):
            group = self._groups.get(hosted.group_id, {})
            if group.get(hosted.key) is hosted:
                del group[hosted.key]
                if not group:
                    del self._groups[hosted.group_id]
        self._to_check[hosted] = None
        if not self._checks:  # a fetch that is completed may change partitions itself
            with self._together():
                pass

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Has fetches look only when the block has changed all that it will: each looks at all its partitions."""
        if self._checks:
            yield
            return
        self._checks = True
        try:
            yield
            while self._to_check:
                hosted = next(iter(self._to_check))
                del self._to_check[hosted]
                self.fetches.check_and_complete(hosted)
        finally:
            self._checks = False
