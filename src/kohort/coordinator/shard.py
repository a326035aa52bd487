"""One shard of the group coordinator: the groups and offsets in one partition of `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from kohort.coordinator.classic import CLASSIC, ClassicGroups, ClassicOffsetRules
from kohort.coordinator.classic.records import VALUE_VERSION
from kohort.coordinator.consumer.environment import ConsumerEnvironment
from kohort.coordinator.consumer.group import ConsumerGroup
from kohort.coordinator.consumer.groups import CONSUMER
from kohort.coordinator.consumer.offset_rules import ConsumerOffsetRules
from kohort.coordinator.consumer.replaying import KEYS as CONSUMER_KEYS
from kohort.coordinator.conversion.classic_members import ClassicMembers
from kohort.coordinator.conversion.groups import ConvertibleGroups
from kohort.coordinator.conversion.join import Joins
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.coordinator.offsets import OffsetRules, Offsets
from kohort.coordinator.offsets import value_version as offset_value_version
from kohort.coordinator.share.environment import ShareEnvironment
from kohort.coordinator.share.groups import SHARE, ShareGroups
from kohort.coordinator.share.offset_rules import ShareOffsetRules
from kohort.coordinator.share.replaying import KEYS as SHARE_KEYS
from kohort.coordinator.step import Answer, Client, Record, Reply, Step
from kohort.coordinator.streams.environment import StreamsEnvironment
from kohort.coordinator.streams.groups import STREAMS, StreamsGroups
from kohort.coordinator.streams.offset_rules import StreamsOffsetRules
from kohort.coordinator.streams.replaying import KEYS as STREAMS_KEYS
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Data
from kohort.protocol.messages.delete_groups import DeleteGroupsResponse
from kohort.protocol.messages.describe_groups import DescribeGroupsResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.list_groups import ListGroupsResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kohort.protocol.stored.offset_commit import LegacyOffsetCommitKey, OffsetCommitKey, OffsetCommitValue

__all__ = ["GroupSettings", "GroupShard", "value_version"]


@dataclass(frozen=True)
class GroupSettings:
    """Settings of the group coordinator: Kafka's keys and defaults."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    group_consumer_migration_policy: str = MigrationPolicy.BIDIRECTIONAL.value
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_minutes: int = 10_080

    @property
    def migration_policy(self) -> MigrationPolicy:
        """Which way groups may go between the classic and the consumer protocol; the key is in upper or lower case."""
        return MigrationPolicy(self.group_consumer_migration_policy.lower())


class Groups(Protocol):
    """The groups of one kind in a shard."""

    def get(self, group_id: str) -> Any: ...

    def group_ids(self) -> Collection[str]: ...

    def listed(self, states: Iterable[str] = ()) -> list[ListGroupsResponse.Group]: ...

    def check_delete(self, group_id: str) -> ErrorCode: ...

    def maybe_delete_empty(self, group_id: str) -> list[Record] | None: ...

    def delete(self, group_id: str) -> list[Record]: ...

    def replay(self, key: Any, value: Any) -> None: ...

    def loaded(self, now: int) -> None: ...


class _Kind(NamedTuple):
    """A kind of groups.

    Attributes:
        name: its type, as ListGroups has it.
        keys: the keys of its records.
        gives_way: the types whose joining members may turn an empty group of this kind into one of theirs, as in Kafka.
    """

    name: str
    groups: Groups
    rules: OffsetRules
    keys: tuple[type[Data], ...]
    gives_way: frozenset[str]


class GroupShard:
    """The state of one partition of `__consumer_offsets`.

    Args:
        wheel: the timers; may be shared among shards.
        new_id: makes a member id from a client id, or from an instance id; each must be new.
        streams: what streams groups need from the broker.
        consumer: what consumer groups need from it.
        share: what share groups need from it.

    Attributes:
        consumer: the consumer groups.
        share: the share groups.
        streams: the streams groups. No two groups have the same id, whatever their type.
        pending_steps: steps that timers caused; taken out and done after each call into the shard or the wheel.
    """

    def __init__(
        self,
        partition: int,
        settings: GroupSettings,
        wheel: TimingWheel,
        new_id: Callable[[str], str],
        streams: StreamsEnvironment | None = None,
        consumer: ConsumerEnvironment | None = None,
        share: ShareEnvironment | None = None,
    ) -> None:
        self.partition = partition
        self.pending_steps: list[Step] = []
        consumer = consumer or ConsumerEnvironment()
        self.streams = StreamsGroups(
            streams or StreamsEnvironment(), wheel, self.pending_steps, partial(self._make_room, STREAMS)
        )
        self.share = ShareGroups(
            share or ShareEnvironment(), wheel, self.pending_steps, partial(self._is_of_other_kind, SHARE)
        )
        self.classic = ClassicGroups(settings, wheel, self.pending_steps, new_id, partial(self._make_room, CLASSIC))
        self.consumer = ConvertibleGroups(
            consumer,
            wheel,
            self.pending_steps,
            partial(self._make_room, CONSUMER),
            self.classic,
            settings.migration_policy,
            settings.group_max_size,
        )
        self._classic_joins: Final = Joins(self.consumer, settings, consumer.cluster, new_id)
        self._classic_members: Final = ClassicMembers(self.consumer, consumer.cluster)
        self._default_kind: Final = _Kind(
            CLASSIC,
            self.classic,
            ClassicOffsetRules(self.classic),
            (GroupMetadataKey,),
            frozenset({CONSUMER, STREAMS}),
        )
        self._kinds: Final = (  # in the order of ListGroups; Kafka has no order, but a test of its wants this one
            _Kind(
                CONSUMER,
                self.consumer,
                ConsumerOffsetRules(self.consumer, consumer.cluster),
                CONSUMER_KEYS,
                frozenset({CLASSIC}),
            ),
            _Kind(STREAMS, self.streams, StreamsOffsetRules(self.streams), STREAMS_KEYS, frozenset({CLASSIC})),
            _Kind(SHARE, self.share, ShareOffsetRules(), SHARE_KEYS, frozenset()),
            self._default_kind,
        )
        self._modern: Final = (self.consumer, self.streams, self.share)
        self._kind_of: Final = {key: kind for kind in self._kinds for key in kind.keys}
        self.offsets = Offsets(settings, self)

    def _find(self, group_id: str) -> _Kind:
        """The kind of a group; that of classic groups for an unknown one."""
        for kind in self._kinds:
            if kind.groups.get(group_id) is not None:
                return kind
        return self._default_kind

    def _is_of_other_kind(self, kind: str, group_id: str) -> bool:
        return any(each.name != kind and each.groups.get(group_id) is not None for each in self._kinds)

    def _make_room(self, joining: str, group_id: str) -> list[Record] | None:
        """The records that remove an empty group, so that a member of another type can make one of its own.

        None if there is a group of another type that doesn't give way.
        """
        records: list[Record] = []
        for kind in self._kinds:
            if kind.name != joining and kind.groups.get(group_id) is not None:
                tombstones = kind.groups.maybe_delete_empty(group_id) if joining in kind.gives_way else None
                if tombstones is None:
                    return None
                records += tombstones
        return records

    # Members of the classic protocol, which may be in a consumer group ------------------------------------------

    def join(self, request: JoinGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """JoinGroup: a member joins or rejoins. Its answer waits for the other members of a classic group."""
        if group := self._with_members(request.group_id):
            return self._classic_joins.join(group, request, client, now, reply)
        return self.classic.join(request, client, now, reply)

    def sync(self, request: SyncGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """SyncGroup: a member asks for its assignment."""
        if group := self._with_members(request.group_id):
            return self._classic_members.sync(group, request, now, reply)
        return self.classic.sync(request, client, now, reply)

    def heartbeat(self, request: HeartbeatRequest, now: int, reply: Reply) -> Step:
        """Heartbeat: starts the member's session timeout over, and tells it to rejoin if it has to."""
        if group := self._with_members(request.group_id):
            return self._classic_members.heartbeat(group, request, now, reply)
        return Step(answers=[Answer(reply, HeartbeatResponse(error_code=self.classic.heartbeat(request, now)))])

    def leave(self, request: LeaveGroupRequest, client: Client, now: int, reply: Reply) -> Step:
        """LeaveGroup: members leave, or an administrator removes them."""
        if group := self._with_members(request.group_id):
            return self._classic_members.leave(group, request, client, now, reply)
        return self.classic.leave(request, client, now, reply)

    def _with_members(self, group_id: str) -> ConsumerGroup | None:
        group = self.consumer.get(group_id)
        return group if group is not None and group.members else None

    # Administrators ---------------------------------------------------------------------------------------------

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListGroupsResponse.Group]:
        """The groups in one of these states and of one of these types, in any case; all if none is given."""
        wanted = {name.strip().lower() for name in types}
        kinds = [kind for kind in self._kinds if not wanted or kind.name in wanted]
        return [group for kind in kinds for group in kind.groups.listed(states)]

    def describe_group(self, group_id: str, version: int) -> DescribeGroupsResponse.Group:
        """State and members of a classic group; `version` is that of DescribeGroups."""
        return self.classic.describe(group_id, version)

    def delete_groups(self, group_ids: Collection[str], reply: Reply) -> Step:
        """Deletes groups without members, with all their offsets; answers with the result of each."""
        records: list[Record] = []
        outcomes: dict[str, ErrorCode] = {}
        for group_id in dict.fromkeys(group_ids):
            groups = self._find(group_id).groups
            outcomes[group_id] = groups.check_delete(group_id)
            if not outcomes[group_id]:
                records += self.offsets.delete_group(group_id)
                records += groups.delete(group_id)

        def answer(outcomes: dict[str, ErrorCode]) -> list[Answer]:
            results = [
                DeleteGroupsResponse.Result(group_id=group_id, error_code=code) for group_id, code in outcomes.items()
            ]
            return [Answer(reply, results)]

        return Step(records, answer(outcomes), lambda code: Step(answers=answer(dict.fromkeys(outcomes, code))))

    # What happens elsewhere --------------------------------------------------------------------------------------

    def depends_on_topics(self) -> bool:
        """Whether there is a group that may have to hear of topics that were created, deleted, or have grown."""
        return any(groups.group_ids() for groups in self._modern)

    def topics_changed(self, names: Collection[str]) -> Step:
        """Topics were created or deleted, or have grown: groups that depend on them are updated."""
        for groups in self._modern:
            groups.topics_changed(names)
        return Step()

    def settings_changed(self, group_id: str | None = None) -> Step:
        """The settings of a group have changed, or those of all groups."""
        for groups in self._modern:
            groups.settings_changed(group_id)
        return Step()

    # What offsets need of groups --------------------------------------------------------------------------------

    def group_ids(self) -> Collection[str]:
        return [group_id for kind in self._kinds for group_id in kind.groups.group_ids()]

    def ensure_simple_group(self, group_id: str) -> None:
        if self._find(group_id).groups is self.classic:
            self.classic.ensure_simple_group(group_id)

    def offset_rules(self, group_id: str) -> OffsetRules:
        return self._find(group_id).rules

    # The log ----------------------------------------------------------------------------------------------------

    def replay(self, key: Data, value: Data | None, producer: tuple[int, int] | None = None) -> None:
        """Applies a record; `producer` is the id and epoch of the transaction it belongs to.

        Records of unknown types, such as a newer server's, are ignored.
        """
        untyped: Any = value
        if isinstance(key, (OffsetCommitKey, LegacyOffsetCommitKey)):
            self.offsets.replay(key, untyped, producer)
        elif (kind := self._kind_of.get(type(key))) is not None:
            kind.groups.replay(key, untyped)
            if kind.groups is not self.classic:
                self._replayed_modern(getattr(key, "group_id"), value is not None)  # noqa: B009

    def _replayed_modern(self, group_id: str, there: bool) -> None:
        """A group with offsets was taken for a simple one until now; one that is removed leaves a simple one."""
        if there:
            self.classic.forget_simple(group_id)
        elif self.offsets.has(group_id):
            self.ensure_simple_group(group_id)

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        self.offsets.replay_marker(producer_id, producer_epoch, commit)

    def loaded(self, now: int) -> None:
        """Starts members' session timeouts, as all of the log was replayed."""
        for kind in self._kinds:
            kind.groups.loaded(now)

    def unload(self, now: int) -> Step:
        """Answers waiting requests with NOT_COORDINATOR, as the shard moves to another broker."""
        for groups in self._modern:
            groups.unload()
        return self.classic.unload(now)


def value_version(value: Data) -> int:
    """The version to write a record's value in: the same as Kafka 4.2's."""
    if isinstance(value, GroupMetadataValue):
        return VALUE_VERSION
    if isinstance(value, OffsetCommitValue):
        return offset_value_version(value)
    return value.__message__.versions[-1]
