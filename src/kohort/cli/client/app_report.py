"""Streams applications as tables and as JSON: their groups, stores and internal topics.

Stores are known by what committed offsets say, which Kohort's applications write, and by the changelogs of the group's
topology, which others have, too. Their changelogs are counted in offsets, which markers of transactions have, too, and
records that compaction has removed: a bound for keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.console import RenderableType
from rich.text import Text

from kohort.cli.client.colours import lag_text, state_text
from kohort.cli.client.group_report import GroupReport, members_tables, read_groups
from kohort.cli.client.tables import table
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupListing, GroupType
from kohort.client.streams.classic.protocol import PROTOCOL_TYPE
from kohort.client.types import TopicInfo, TopicPartition
from kohort.number_ranges import numbers
from kohort.spark.program.committed_metadata import committed_by
from kohort.spark.program.store_formats import ROWS

if TYPE_CHECKING:
    from kohort.client.admin import Admin

_CHANGELOG: Final = "-changelog"
_REPARTITION: Final = "-repartition"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """A store.

    Attributes:
        store: its name.
        made_of: the topic that it is made of; None if no offset tells.
        columns: what is kept; () if no offset tells.
        left: whether the program that ran last hasn't got it.
        changelog: its topic; None if it isn't there.
        records: offsets of the changelog: records at most, as markers of transactions and gaps of compaction have some.
    """

    store: str
    made_of: str | None
    columns: tuple[str, ...]
    left: bool
    changelog: str | None
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputReport:
    """A topic that an application reads, and what it has left to read of it.

    Attributes:
        lag: records after committed offsets, and all of partitions that nothing is committed for yet, since streams
            applications begin at the first record unless they are told otherwise. None if it isn't known of a
            partition, such as one without a leader.
        uncommitted: those of the latter; None if they aren't known of one of these partitions.
    """

    topic: str
    internal: bool
    partitions: int
    lag: int | None
    uncommitted: int | None


@dataclass(frozen=True, slots=True)
class AppReport:
    """An application."""

    group: GroupReport
    inputs: tuple[InputReport, ...]
    stores: tuple[StoreReport, ...]

    @property
    def lag(self) -> int | None:
        """How many records it has left to read, in all; None if it isn't known of a topic."""
        return _sum(each.lag for each in self.inputs)

    @property
    def kohorts(self) -> bool:
        """Whether a program of Kohort's has committed."""
        return any(committed_by(each.metadata) is not None for each in self.group.lag.values())


def may_be_application(group: GroupListing) -> bool:
    """Whether a group may be a streams application's; an empty classic group is one if it has committed as one."""
    return group.type is GroupType.STREAMS or (
        group.type is GroupType.CLASSIC and group.protocol_type in ("", PROTOCOL_TYPE)
    )


def is_application(report: AppReport) -> bool:
    """Whether it is one."""
    group = report.group.group
    return group.type is GroupType.STREAMS or group.protocol_type == PROTOCOL_TYPE or report.kohorts


async def read_apps(admin: Admin, names: Iterable[str]) -> list[AppReport]:
    """The reports of applications, in the order of their names."""
    groups = await read_groups(admin, [*names])
    topics = await admin.topics.list(internal=True)
    prefixes = tuple(f"{each.group.group_id}-" for each in groups)
    internal = [
        TopicPartition(name, number)
        for name, info in topics.items()
        if name.startswith(prefixes) and name.endswith(_CHANGELOG)
        for number in info.partitions
    ]
    ends = await admin.offsets.ends(internal) if internal else {}
    return [app_report(each, topics, ends) for each in groups]


def app_report(
    group: GroupReport, topics: Mapping[str, TopicInfo], ends: Mapping[TopicPartition, tuple[int, int]]
) -> AppReport:
    """What is known of an application.

    Args:
        topics: those of the cluster.
        ends: of changelogs, the first offset and the one after the last.
    """
    prefix = f"{group.group.group_id}-"
    read: dict[str, list[PartitionLag]] = {}
    for at, lag in group.lag.items():
        read.setdefault(at.topic, []).append(lag)
    inputs = [
        InputReport(
            topic=topic,
            internal=topic.startswith(prefix) and topic.endswith(_REPARTITION),
            partitions=len(lags),
            lag=_sum(each.uncommitted if each.committed is None else each.lag for each in lags),
            uncommitted=_sum(each.uncommitted for each in lags if each.committed is None),
        )
        for topic, lags in read.items()
    ]
    return AppReport(group, tuple(inputs), tuple(_stores(group, prefix, topics, ends)))


def _sum(counts: Iterable[int | None]) -> int | None:
    """Their sum; None if one isn't known."""
    total = 0
    for each in counts:
        if each is None:
            return None
        total += each
    return total


def _stores(
    group: GroupReport,
    prefix: str,
    topics: Mapping[str, TopicInfo],
    ends: Mapping[TopicPartition, tuple[int, int]],
) -> Iterable[StoreReport]:
    found: dict[str, tuple[str | None, tuple[str, ...], bool]] = dict.fromkeys(
        _by_topology(group.group, prefix), (None, (), False)
    )
    for at, lag in group.lag.items():
        said = committed_by(lag.metadata)
        for name, each in ((said.formats or {}) if said is not None else {}).items():
            if name != ROWS:
                found[name] = at.topic, tuple(each.columns), each.left
    for name, (made_of, columns, left) in sorted(found.items()):
        changelog = f"{prefix}{name}{_CHANGELOG}"
        yield StoreReport(
            store=name,
            made_of=made_of,
            columns=columns,
            left=left,
            changelog=changelog if changelog in topics else None,
            records=sum(end - first for at, (first, end) in ends.items() if at.topic == changelog),
        )


def _by_topology(group: GroupDescription, prefix: str) -> list[str]:
    if group.topology is None:
        return []
    topics = [topic.name for part in group.topology.subtopologies.values() for topic in part.changelogs]
    return [
        name.removeprefix(prefix).removesuffix(_CHANGELOG)
        for name in topics
        if name.startswith(prefix) and name.endswith(_CHANGELOG)
    ]


def apps_table(reports: Iterable[AppReport]) -> RenderableType:
    """A line for each application."""
    return table(
        ("Application", "Group", "State", ">Members", ">Stores", ">Lag"),
        (
            (
                each.group.group.group_id,
                each.group.group.type.value,
                state_text(each.group.group.state),
                len(each.group.group.members),
                len(each.stores),
                _lag(each.lag),
            )
            for each in reports
        ),
    )


def app_tables(report: AppReport) -> list[RenderableType]:
    """An application's group and members, what it reads, and its stores."""
    shown = members_tables(report.group)
    tasks = _tasks(report.group.group)
    if tasks:
        shown.append(table(("Sub-topology", "Tasks", "Reads"), tasks))
    if report.inputs:
        shown.append(_inputs(report.inputs))
    if report.stores:
        shown.append(
            table(
                ("Store", "Made of", "Columns", "", ">Offsets of its changelog"),
                (
                    (
                        each.store,
                        each.made_of,
                        ", ".join(each.columns) or None,
                        "left" if each.left else None,
                        None if each.changelog is None else each.records,
                    )
                    for each in report.stores
                ),
            )
        )
    return shown


def _lag(lag: int | None) -> Text:
    """A lag; one that isn't known is neither nothing nor well."""
    return lag_text(lag) or Text("unknown", "yellow")


def _inputs(inputs: Sequence[InputReport]) -> RenderableType:
    """Topics with their lag, and how much of it has never been committed, where there is any."""
    columns = ["Topic", "", ">Partitions", ">Lag"]
    rows: list[list[object]] = [
        [each.topic, "its own" if each.internal else None, each.partitions, _lag(each.lag)] for each in inputs
    ]
    if any(each.uncommitted != 0 for each in inputs):
        columns.append(">Of it without a commit")
        for row, each in zip(rows, inputs, strict=True):
            row.append("unknown" if each.uncommitted is None else each.uncommitted or None)
    return table(columns, rows)


def app_as_json(report: AppReport) -> dict[str, Any]:
    """An application as JSON."""
    group = report.group.group
    return {
        "application_id": group.group_id,
        "group": {"type": group.type.value, "state": group.state},
        "kohort": report.kohorts,
        "members": [
            {
                "member_id": each.member_id,
                "client_id": each.client_id,
                "host": each.host,
                "tasks": {}
                if each.streams is None
                else {str(task): role.value for task, role in sorted(each.streams.tasks.items())},
            }
            for each in group.members
        ],
        "inputs": [asdict(each) for each in report.inputs],
        "stores": [asdict(each) for each in report.stores],
        "lag": report.lag,
    }


def _tasks(group: GroupDescription) -> list[tuple[str, str, str]]:
    """Sub-topologies, with the partitions that members have tasks of."""
    if group.topology is None:
        return []
    given: dict[str, set[int]] = {}
    for member in group.members:
        for task in member.streams.tasks if member.streams is not None else ():
            given.setdefault(task.subtopology, set()).add(task.partition)
    return [
        (name, numbers(given.get(name, ())) or "-", ", ".join(each.inputs))
        for name, each in group.topology.subtopologies.items()
    ]
