"""One consumer group."""

from __future__ import annotations

from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.soft_state import SoftState
from kohort.coordinator.consumer.states import GroupState
from kohort.coordinator.consumer.subscriptions import ResolvedRegex, Subscriptions
from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.modern.partitions import Role
from kohort.coordinator.timing_wheel import Timer
from kohort.protocol.topic_partition import TopicIdPartition

_UNKNOWN = ConsumerMetadata()


class ConsumerGroup(ModernGroup[ConsumerMetadata, TopicIdPartition, Role, SoftState]):
    """A consumer group: the state of its records, and soft state beside it that a restart may lose.

    Attributes:
        metadata_hash: fingerprint of the subscribed topics at the latest bump of the group epoch.
        regexes: resolved regular expressions.
        subscriptions: what members subscribe to.
        has_topics_record: whether the log has a record of type 4, which brokers before Kafka 4.1 wrote.
        regex_timer: runs when regular expressions are to be resolved again.
    """

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, _UNKNOWN, SoftState())
        self.metadata_hash = 0
        self.regexes: dict[str, ResolvedRegex] = {}
        self.subscriptions = Subscriptions()
        self.has_topics_record = False
        self.regex_timer: Timer | None = None

    def __repr__(self) -> str:
        return (
            f"<consumer group {self.group_id!r} {self.state.value} epoch={self.epoch}"
            f" assignment_epoch={self.assignment_epoch} members={len(self.members)}>"
        )

    @property
    def state(self) -> GroupState:
        if not self.members:
            return GroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if self.reconciled else GroupState.RECONCILING

    def put_metadata(self, member_id: str, metadata: ConsumerMetadata) -> None:
        member = self.members.get(member_id)
        self.subscriptions.change(None if member is None else member.metadata, metadata)
        super().put_metadata(member_id, metadata)

    def drop_member(self, member_id: str) -> None:
        if (member := self.members.get(member_id)) is not None:
            self.subscriptions.change(member.metadata, None)
        super().drop_member(member_id)

    def put_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Sets the topics of a regular expression; None removes it."""
        if resolved is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = resolved

    @property
    def resolved_at(self) -> int:
        """When regular expressions were resolved last, in ms since 1970; 0 if never."""
        return max((resolved.timestamp for resolved in self.regexes.values()), default=0)
