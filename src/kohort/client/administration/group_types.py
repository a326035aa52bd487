"""Descriptions of groups and their members, the same for every type of group."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kohort.client.types import Broker, TopicPartition
from kohort.notebook_html import page, paragraph, table
from kohort.number_ranges import partitions_text
from kohort.plurals import several
from kohort.short_names import short_names
from kohort.streams.task_offsets import records_left
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology


class GroupType(enum.StrEnum):
    """A group's protocol."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, name: str) -> GroupType:
        """Returns the type by a broker's name for it; brokers before Kafka 3.8 have none, and classic groups alone."""
        known = {each.value: each for each in cls}
        return known.get(name.lower(), cls.UNKNOWN) if name else cls.CLASSIC


class GroupListing(NamedTuple):
    """A group in a list.

    Attributes:
        group_id: its name.
        type: its protocol.
        state: Stable, Empty, …; "" where the broker is too old to say.
        protocol_type: "consumer" for consumers' groups, "" for offsets without members.
        coordinator: the node id of the broker that coordinates it.
    """

    group_id: str
    type: GroupType
    state: str
    protocol_type: str
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMemberState:
    """The part of a member that only streams groups have (KIP-1071).

    Attributes:
        process_id: the same for all members of one process, which share state on disk.
        endpoint: (host, port) where it answers interactive queries; None for nowhere.
        tags: its client tags, to spread standbys.
        topology_epoch: of its topology.
        tasks, target_tasks: its current and target assignment.
        task_offsets, task_end_offsets: summed changelog offsets of tasks, and their ends.
    """

    process_id: str
    endpoint: tuple[str, int] | None
    tags: Mapping[str, str]
    topology_epoch: int
    tasks: Mapping[TaskId, Role]
    target_tasks: Mapping[TaskId, Role]
    task_offsets: Mapping[TaskId, int]
    task_end_offsets: Mapping[TaskId, int]

    @property
    def to_restore(self) -> int:
        """Changelog records that its active tasks and warm-ups have yet to read, by what it told last.

        Standbys follow what is written, and have no end to come to; state that lies on its disk unused is no task's.
        """
        ends = self.task_end_offsets
        restored = (task for task, role in self.tasks.items() if role is not Role.STANDBY)
        return sum(records_left(self.task_offsets.get(task), ends.get(task)) or 0 for task in restored)


def _tasks_text(tasks: Mapping[TaskId, Role]) -> str:
    by_role = {
        role: [(each.subtopology, each.partition) for each, its in tasks.items() if its is role] for role in Role
    }
    return "; ".join(f"{role.value} {partitions_text(some)}" for role, some in by_role.items() if some)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member of a group.

    Attributes:
        member_id, instance_id: its id, and its static name if it has one.
        client_id, host: its client id, and the host it connects from.
        rack: its rack; None if unknown.
        epoch: its member epoch; None in classic groups, where only the group has a generation.
        classic: whether it has the classic protocol (in a consumer or streams group: during its upgrade).
        topics, pattern: its subscription, where the broker says it.
        partitions: its current assignment; of a streams member, the inputs of its active tasks, by the topology.
        target: its target assignment; None where the protocol has none.
        streams: the streams part; None for other members.
        has_metadata: in classic groups, whether the broker tells what it joined with. While a rebalance is prepared,
            Kohort's brokers tell that of members that have joined again, and Apache Kafka's of none.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int | None
    classic: bool
    topics: tuple[str, ...]
    pattern: str | None
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] | None
    streams: StreamsMemberState | None = None
    has_metadata: bool = False

    def _has_and_goes_to(self) -> tuple[str, str]:
        """What it has, and what else it is to have: partitions, or tasks with their roles."""
        if self.streams is None:
            target = None if self.target is None else partitions_text(self.target)
            has = partitions_text(self.partitions)
        else:
            has, target = _tasks_text(self.streams.tasks), _tasks_text(self.streams.target_tasks)
        return has, "" if target is None or target == has else target or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group with its members.

    Attributes:
        group_id, type, state: as in `GroupListing`.
        coordinator: the broker that coordinates it.
        assignor: who makes its assignments: a classic group's protocol, or the broker's assignor; "" if none is told.
        protocol_type: "consumer" for consumers of every protocol.
        epoch, assignment_epoch: the group's, and that which the target assignment was made for; None in classic groups.
        members: who is in it, by id in order.
        topology_epoch, topology: of streams groups; the topology is None while its topics are missing or unfit. Its
            source patterns are resolved to topics, and internal topics have their numbers of partitions.
    """

    group_id: str
    type: GroupType
    state: str
    coordinator: Broker
    assignor: str
    protocol_type: str
    epoch: int | None
    assignment_epoch: int | None
    members: tuple[GroupMember, ...]
    topology_epoch: int | None = None
    topology: Topology | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        columns = ("member", "client", "host", "epoch", "partitions" if self.topology is None else "tasks", "going to")
        rows = []
        short = short_names(each.member_id for each in self.members)
        for each in self.members:
            name = short[each.member_id] + (f" ({each.instance_id})" if each.instance_id else "")
            rows.append([name, each.client_id, each.host, each.epoch, *each._has_and_goes_to()])
        facts = [self.state, several(len(self.members), "member"), f"coordinator {self.coordinator}"]
        facts += [f"epoch {self.epoch}"] if self.epoch is not None else []
        facts += [f"assignor {self.assignor}"] if self.assignor else []
        return page(f"{self.type.value} group", self.group_id, paragraph(", ".join(facts)), table(columns, rows))

    def owners(self) -> dict[TopicPartition, list[GroupMember]]:
        """Who reads each partition that the group has given out; several members may in share groups."""
        found: dict[TopicPartition, list[GroupMember]] = {}
        for member in self.members:
            for partition in member.partitions:
                found.setdefault(partition, []).append(member)
        return found
