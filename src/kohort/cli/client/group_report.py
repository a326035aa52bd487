"""Groups as tables and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.text import Text

from kohort.cli.client.colours import lag_text, state_text
from kohort.cli.client.group_partitions import partitions_read
from kohort.cli.client.missing_topics import missing_sentences, missing_topics
from kohort.cli.client.tables import table
from kohort.cli.terminal import printable
from kohort.client.administration.awaited_members import awaited, awaited_members
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import (
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupType,
)
from kohort.client.administration.uncommitted import where_it_begins
from kohort.client.types import TopicPartition, by_topic
from kohort.number_ranges import partitions_text
from kohort.plurals import several
from kohort.short_names import short_names
from kohort.streams.tasks import Role, TaskId, in_role
from kohort.streams.topology import Subtopology

if TYPE_CHECKING:
    from kohort.client.admin import Admin


_TOPICS: Final = 5
"""So many topics of a member's subscription are named; of more, the rest is counted."""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group, and its lag in each partition that it reads or has read.

    Attributes:
        missing: topics that it subscribes to and that aren't there, each with the names of similar ones.
    """

    group: GroupDescription
    lag: Mapping[TopicPartition, PartitionLag]
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def uncommitted(self) -> int:
        """Records of partitions that the group has committed nothing for."""
        return sum(each.uncommitted or 0 for each in self.lag.values())

    def of_partitions(self, partitions: Iterable[TopicPartition]) -> GroupReport:
        """The same, with the lag in these partitions alone."""
        return replace(self, lag={at: self.lag[at] for at in partitions})


async def read_groups(admin: Admin, names: Sequence[str]) -> list[GroupReport]:
    """The reports of groups, in the order of their names."""
    groups = await admin.groups.describe(*names)
    missing = await missing_topics(admin, groups.values())
    reports = []
    for name in dict.fromkeys(names):
        # A streams application reads committed records only: its lag ends where an open transaction begins, too.
        isolation = "read_committed" if groups[name].type is GroupType.STREAMS else "read_uncommitted"
        partitions = await partitions_read(admin, groups[name])
        lag = await admin.group_offsets.lag(name, partitions=partitions, isolation_level=isolation)
        # A streams task has a partition of each of its topics, which some of these may not have.
        existing = {at: each for at, each in lag.items() if each.committed is not None or each.end is not None}
        reports.append(GroupReport(groups[name], existing, missing))
    return reports


def groups_table(groups: Iterable[GroupListing]) -> RenderableType:
    return table(
        ("Group", "Type", "State", "Protocol", ">Coordinator"),
        (
            (group.group_id, group.type.value, state_text(group.state), group.protocol_type or None, group.coordinator)
            for group in groups
        ),
    )


def listing_as_json(group: GroupListing) -> dict[str, Any]:
    return {**group._asdict(), "type": group.type.value}


def group_tables(report: GroupReport) -> list[RenderableType]:
    """A group's header, its members and its offsets."""
    shown = members_tables(report)
    return [*shown, *offsets_tables(report)]


def members_tables(report: GroupReport) -> list[RenderableType]:
    """A group's header and its members."""
    return [_header(report), *([_members(report.group)] if report.group.members else [])]


def offsets_tables(report: GroupReport) -> list[RenderableType]:
    """A group's offsets; of a share group, also what is in flight."""
    shown: list[RenderableType] = [_offsets(report)] if report.lag else []
    if report.uncommitted:
        shown.append(_where_it_begins(report))
    if any(lag.in_flight for lag in report.lag.values()):
        shown.append(_in_flight(report))
    return shown


def group_as_json(report: GroupReport) -> dict[str, Any]:
    """A group as JSON; null for fields that its type doesn't have."""
    group = report.group
    owners = group.owners()
    return {
        "group_id": group.group_id,
        "type": group.type.value,
        "state": group.state,
        "coordinator": {
            "node_id": group.coordinator.node_id,
            "host": group.coordinator.host,
            "port": group.coordinator.port,
        },
        "protocol_type": group.protocol_type,
        "assignor": group.assignor or None,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology_epoch": group.topology_epoch,
        "topology": None
        if group.topology is None
        else [_subtopology(name, each) for name, each in group.topology.subtopologies.items()],
        "waiting_for": [member.member_id for member in awaited_members(group)],
        "missing_topics": sorted({topic for each in group.members for topic in each.topics} & report.missing.keys()),
        "members": [_member_as_json(member) for member in group.members],
        "offsets": [
            {
                "topic": at.topic,
                "partition": at.partition,
                "committed": lag.committed,
                "end": lag.end,
                "lag": lag.lag,
                "uncommitted": lag.uncommitted,
                "leader_epoch": lag.leader_epoch if lag.leader_epoch >= 0 else None,
                "metadata": lag.metadata,
                "members": [member.member_id for member in owners.get(at, ())],
                "in_flight": [each._asdict() for each in lag.in_flight],
            }
            for at, lag in report.lag.items()
        ],
    }


def _header(report: GroupReport) -> Text:
    group = report.group
    members = several(len(group.members), "member")
    state = state_text(group.state) or Text("state unknown")
    facts = [f"coordinator {group.coordinator}"]
    if group.assignor:
        facts.append(f"assignor {group.assignor}")
    for name, epoch in (
        ("group epoch", group.epoch),
        ("assignment epoch", group.assignment_epoch),
        ("topology epoch", group.topology_epoch),
    ):
        if epoch is not None:
            facts.append(f"{name} {epoch}")
    if group.type is GroupType.STREAMS and group.topology is None:
        facts.append("topics missing or unfit")
    lines = [", ".join(facts), *awaited(group), *missing_sentences(group, report.missing)]
    return Text.assemble(
        (printable(group.group_id), "bold"),
        f": {group.type.value} group, ",
        state,
        f", {members}\n",
        "\n".join(map(printable, lines)),
    )


def _members(group: GroupDescription) -> RenderableType:
    """A line a member, without columns that would be empty."""
    columns: list[tuple[str, Callable[[GroupMember], object]]] = [("Member", lambda member: member.member_id)]
    optional: list[tuple[str, Callable[[GroupMember], object]]] = [
        ("Static name", lambda member: member.instance_id),
        ("Client", lambda member: member.client_id or None),
        ("Host", lambda member: member.host.removeprefix("/") or None),
        ("Rack", lambda member: member.rack),
        (">Epoch", lambda member: member.epoch),
        ("Protocol", lambda member: "classic" if member.classic and group.type is not GroupType.CLASSIC else None),
    ]
    if group.type is GroupType.STREAMS:
        optional += [
            ("Process", _process),
            ("Active", lambda member: _role(member, Role.ACTIVE)),
            ("Standby", lambda member: _role(member, Role.STANDBY)),
            ("Warm-up", lambda member: _role(member, Role.WARMUP)),
            ("On the way to", _tasks_to_come),
            ("Restoring", _restoring),
        ]
    else:
        if _subscribe_differently(group.members):
            optional.append(("Subscribes to", _subscription))
        optional += [
            ("Partitions", lambda member: partitions_text(member.partitions) or None),
            ("On the way to", _partitions_to_come),
        ]
    columns += [(name, cell) for name, cell in optional if any(cell(member) is not None for member in group.members)]
    rows = [[cell(member) for _, cell in columns] for member in group.members]
    return table([name for name, _ in columns], rows)


def _subscribe_differently(members: Iterable[GroupMember]) -> bool:
    """Whether members have different subscriptions, of those whose subscription is told."""
    told = {(frozenset(each.topics), each.pattern) for each in members if each.has_metadata or not each.classic}
    return len(told) > 1


def _subscription(member: GroupMember) -> str | None:
    """What a member subscribes to, by names as far as they are few."""
    names = [*member.topics[:_TOPICS], *([f"{member.pattern} (pattern)"] if member.pattern else [])]
    if len(member.topics) > _TOPICS:
        names.append(f"{len(member.topics) - _TOPICS:,} more")
    return ", ".join(names) or None


def _offsets(report: GroupReport) -> RenderableType:
    owners = report.group.owners()
    names = short_names([member.member_id for member in report.group.members])
    start = "Start" if report.group.type is GroupType.SHARE else "Committed"
    columns: list[tuple[str, Callable[[TopicPartition, PartitionLag], object]]] = [
        ("Topic", lambda at, lag: at.topic),
        (">Partition", lambda at, lag: str(at.partition)),
        (f">{start}", lambda at, lag: lag.committed),
        (">End", lambda at, lag: lag.end),
        (">Lag", lambda at, lag: lag_text(lag.lag)),
    ]
    if report.uncommitted:
        columns.append((">Without a commit", lambda at, lag: lag.uncommitted))
    columns.append(
        (
            "Member",
            lambda at, lag: (
                ", ".join(member.instance_id or names[member.member_id] for member in owners.get(at, ())) or None
            ),
        )
    )
    rows: list[list[object]] = [[cell(at, lag) for _, cell in columns] for at, lag in report.lag.items()]
    known = [lag.lag for lag in report.lag.values() if lag.lag is not None]
    if len(report.lag) > 1 and (known or report.uncommitted):
        rows.append(
            [
                "in all",
                "",
                "",
                "",
                lag_text(sum(known)) if known else None,
                *([report.uncommitted] if report.uncommitted else []),
                "",
            ]
        )
    return table([name for name, _ in columns], rows)


def _where_it_begins(report: GroupReport) -> Text:
    """What records count for that are in partitions without a commit."""
    return Text(where_it_begins(report.group.type, report.lag.values()), style="dim")


def _in_flight(report: GroupReport) -> RenderableType:
    """Records of a share group that were handed out and aren't done."""
    holders = {each.member_id for lag in report.lag.values() for each in lag.in_flight if each.member_id is not None}
    names = short_names({*holders, *(member.member_id for member in report.group.members)})
    rows = [
        (
            at.topic,
            str(at.partition),
            str(each.first_offset)
            if each.first_offset == each.last_offset
            else f"{each.first_offset}–{each.last_offset}",
            each.state,
            each.delivery_count,
            None if each.member_id is None else names[each.member_id],
            None if each.locked_until_ms is None else _clock(each.locked_until_ms),
        )
        for at, lag in report.lag.items()
        for each in lag.in_flight
    ]
    return table(("Topic", ">Partition", ">In flight", "State", ">Deliveries", "Member", "Locked until"), rows)


def _clock(ms: int) -> str:
    """A time of the near future or past, in UTC, as far as anyone reads it."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%H:%M:%S} UTC"


def _process(member: GroupMember) -> str | None:
    """Members of one process share state; None if a member is a process of its own."""
    return (
        None if member.streams is None or member.streams.process_id == member.member_id else member.streams.process_id
    )


def _role(member: GroupMember, role: Role) -> str | None:
    return None if member.streams is None else _tasks_text(member.streams.tasks, role) or None


def _tasks_text(tasks: Mapping[TaskId, Role], role: Role) -> str:
    return partitions_text(sorted(task for task, has in tasks.items() if has is role))


def _tasks_to_come(member: GroupMember) -> str | None:
    """The active tasks and standbys of the target assignment, if they differ from the current ones."""
    if member.streams is None:
        return None
    now, then = member.streams.tasks, member.streams.target_tasks
    parts = [
        f"{role.value} {_tasks_text(then, role) or 'none'}"
        for role in (Role.ACTIVE, Role.STANDBY)
        if in_role(now, role) != in_role(then, role)
    ]
    return "; ".join(parts) or None


def _restoring(member: GroupMember) -> str | None:
    """The number of changelog records that the member's tasks have yet to restore, as far as it reported."""
    lacks = 0 if member.streams is None else member.streams.to_restore
    return several(lacks, "record") if lacks else None


def _partitions_to_come(member: GroupMember) -> str | None:
    if member.target is None or member.target == member.partitions:
        return None
    return partitions_text(member.target) or "none"


def _member_as_json(member: GroupMember) -> dict[str, Any]:
    streams = member.streams
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "rack": member.rack,
        "epoch": member.epoch,
        "classic": member.classic,
        "topics": list(member.topics),
        "pattern": member.pattern,
        "partitions": by_topic(member.partitions),
        "target": None if member.target is None else by_topic(member.target),
        "streams": None
        if streams is None
        else {
            "process_id": streams.process_id,
            "endpoint": None
            if streams.endpoint is None
            else {"host": streams.endpoint[0], "port": streams.endpoint[1]},
            "tags": dict(streams.tags),
            "topology_epoch": streams.topology_epoch,
            "tasks": _tasks_as_json(streams.tasks),
            "target_tasks": _tasks_as_json(streams.target_tasks),
            "task_offsets": _progress(streams.task_offsets),
            "task_end_offsets": _progress(streams.task_end_offsets),
        },
    }


def _subtopology(name: str, each: Subtopology) -> dict[str, Any]:
    return {
        "name": name,
        "source_topics": list(each.source_topics),
        "repartition_sink_topics": list(each.repartition_sinks),
        "repartition_source_topics": [topic.name for topic in each.repartition_sources],
        "changelog_topics": [topic.name for topic in each.changelogs],
    }


def _tasks_as_json(tasks: Mapping[TaskId, Role]) -> dict[str, dict[str, list[int]]]:
    return {
        name: {subtopology: list(numbers) for subtopology, numbers in in_role(tasks, role).items()}
        for name, role in (("active", Role.ACTIVE), ("standby", Role.STANDBY), ("warmup", Role.WARMUP))
    }


def _progress(offsets: Mapping[TaskId, int]) -> list[dict[str, Any]]:
    return [{"subtopology": name, "partition": number, "offset": to} for (name, number), to in sorted(offsets.items())]
