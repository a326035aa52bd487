"""A consumer group as it will be when the records of the current step are in the log."""

from __future__ import annotations

from kohort.coordinator.consumer import records
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.consumer.soft_state import SoftState
from kohort.coordinator.consumer.subscriptions import ResolvedRegex, Subscriptions
from kohort.coordinator.modern.draft import ModernDraft
from kohort.coordinator.modern.partitions import Role
from kohort.coordinator.step import Record
from kohort.protocol.topic_partition import TopicIdPartition


class Draft(ModernDraft[ConsumerMetadata, TopicIdPartition, Role, SoftState]):
    """A group with changes that aren't made yet.

    Attributes:
        metadata_hash: the group's, changed.
    """

    def __init__(self, group: ConsumerGroup, settings: ConsumerSettings, now: int) -> None:
        super().__init__(group, records, ConsumerMetadata(), now)
        self.group = group
        self.settings = settings
        self.metadata_hash = group.metadata_hash
        self._regexes = group.regexes
        self._subscriptions: Subscriptions | None = None

    # What it will be --------------------------------------------------------------------------------------------

    @property
    def subscriptions(self) -> Subscriptions:
        """What members subscribe to; not to be changed."""
        return self.group.subscriptions if self._subscriptions is None else self._subscriptions

    def regex(self, regex: str) -> ResolvedRegex | None:
        """A regular expression with its topics; None if it isn't resolved."""
        return self._regexes.get(regex)

    def has_unresolved(self) -> bool:
        """Whether a member subscribes with a regular expression that isn't resolved."""
        return not self.subscriptions.regexes.keys() <= self._regexes.keys()

    def topic_names(self) -> set[str]:
        """The names of all topics that members subscribe to."""
        return self.subscriptions.names(self._regexes)

    def may_have_lost(self, metadata: ConsumerMetadata) -> bool:
        """Whether nobody may subscribe any longer to a topic of a member that was removed."""
        subscriptions = self.subscriptions
        if metadata.regex and metadata.regex not in subscriptions.regexes:
            return True
        return any(name not in subscriptions.topics for name in metadata.topics)

    def topic_names_of(self, metadata: ConsumerMetadata) -> set[str]:
        """The names of the topics that a member subscribes to."""
        resolved = None if not metadata.regex else self._regexes.get(metadata.regex)
        return {*metadata.topics, *(() if resolved is None else resolved.topics)}

    # Changes ----------------------------------------------------------------------------------------------------

    def group_record(self) -> Record:
        return records.group_record(self.group_id, self.epoch, self.metadata_hash)

    def bump(self, why: str) -> None:
        super().bump(why)
        if self.group.has_topics_record:
            self.records.append(records.topics_tombstone(self.group_id))

    def put_member(self, member_id: str, metadata: ConsumerMetadata) -> None:
        self._subscribe(member_id, metadata)
        super().put_member(member_id, metadata)

    def remove_member(self, member_id: str) -> None:
        self._subscribe(member_id, None)
        super().remove_member(member_id)

    def _subscribe(self, member_id: str, metadata: ConsumerMetadata | None) -> None:
        if self._subscriptions is None:
            self._subscriptions = self.group.subscriptions.copy()
        self._subscriptions.change(self.metadata(member_id), metadata)

    def put_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Sets the topics of a regular expression; None removes it."""
        if self._regexes is self.group.regexes:
            self._regexes = dict(self._regexes)
        if resolved is None:
            self._regexes.pop(regex, None)
            self.records.append(records.regex_tombstone(self.group_id, regex))
        else:
            self._regexes[regex] = resolved
            self.records.append(records.regex_record(self.group_id, regex, resolved))
