"""A group's page: its members, what each has, and how far it is in each partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kohort.client.administration.awaited_members import awaited, why_awaited
from kohort.client.administration.group_offsets import PartitionLag
from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType
from kohort.client.administration.uncommitted import where_it_begins
from kohort.client.types import TopicPartition
from kohort.console.chart import chart
from kohort.console.delay import Delay
from kohort.console.flow import Rate
from kohort.console.group_events import GroupEvents
from kohort.console.history import History
from kohort.console.links import topic_link
from kohort.console.live import Cell, Table, View
from kohort.console.partition_lags import MOST_LINES, Line, PartitionLags
from kohort.console.task_times import TaskTimes
from kohort.console.timeline import timeline_texts
from kohort.console.trend import Trend
from kohort.console.words import (
    NOTHING,
    delay_text,
    duration,
    member_names,
    moment,
    number,
    pace,
    sentence,
    state_tone,
    trend_text,
    visible,
)
from kohort.number_ranges import partitions_text
from kohort.plurals import several
from kohort.protocol.share_in_flight import InFlight
from kohort.short_names import short_names
from kohort.streams.task_offsets import records_left
from kohort.streams.tasks import Role, TaskId

MOST_ROWS: Final = 500
"""Rows of a table: of more partitions, those with the largest lag are shown."""

FIRST_ROWS: Final = 10
"""Of what has happened, that are seen at once: what stands below isn't pushed out of sight."""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group, and its lag in each partition that it reads or has read."""

    group: GroupDescription
    lag: Mapping[TopicPartition, PartitionLag]

    @property
    def lags(self) -> dict[TopicPartition, int]:
        """Its lag in each partition where it is known."""
        return {at: each.lag for at, each in self.lag.items() if each.lag is not None}

    @property
    def total(self) -> int | None:
        """Its lag in all partitions where it is known; None if it is in none."""
        return total_lag(self.lag)

    @property
    def end(self) -> int:
        """The ends of these partitions, summed up."""
        return sum(each.end for each in self.lag.values() if each.lag is not None and each.end is not None)


def total_lag(lag: Mapping[TopicPartition, PartitionLag]) -> int | None:
    """A group's lag in all partitions where it is known; None if it is in none."""
    known = [each.lag for each in lag.values() if each.lag is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Heading:
    """A table of the page.

    Attributes:
        name: by which the view has it.
        title: what stands above.
        columns: their names; those that begin with > hold numbers.
        empty: what is said where it has no rows.
        first: so many rows are seen at once, and the others, a table of their own, when they are asked for; None for
            all.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    empty: str
    first: int | None = None


def headings(kind: GroupType) -> tuple[Heading, ...]:
    """The tables that a page has for a group of this type, so that what they are never changes while it is open."""
    nobody = "Nobody is in the group."
    columns: tuple[str, ...]
    by_topic = Heading(
        "partitions",
        "Lag by partition",
        ("Partition", ">Start", ">End", ">Lag", "Over time", "Member")
        if kind is GroupType.SHARE
        else ("Partition", ">Committed", ">End", ">Lag", "Over time", ">Without a commit", "Member"),
        "The group has no offsets.",
    )
    happened = "Nothing since the console began to look."
    events = Heading("events", "What has happened", ("Seen", "What"), happened, FIRST_ROWS)
    match kind:
        case GroupType.STREAMS:
            columns = ("Member", "Client", "Host", "Process", ">Epoch", "On the way to", ">To restore")
            return (
                Heading("members", "Members", columns, nobody),
                Heading("tasks", "Tasks", ("Task", "Active", "Standby", "Warm-up"), "No tasks are given out."),
                Heading(
                    "copies",
                    "Standbys and warm-ups",
                    ("Task", "Member", "As", ">Records behind", ">Restored"),
                    "No member keeps a copy of another's task.",
                ),
                Heading(
                    "moves",
                    "What has moved",
                    ("Seen", "Task", "From", "To"),
                    "No task has got another member since the console began to look.",
                    FIRST_ROWS,
                ),
                events,
                by_topic,
                Heading(
                    "topology",
                    "Topology",
                    ("Subtopology", "Reads", "Records", "Writes to repartition topics", "Keeps state in"),
                    "Its topics are missing or don't fit, or no member has brought a topology yet.",
                ),
            )
        case GroupType.SHARE:
            return (
                Heading("members", "Members", ("Member", "Client", "Host", ">Epoch", "Partitions"), nobody),
                events,
                by_topic,
                Heading(
                    "holders",
                    "In flight by member",
                    ("Member", ">Records", ">Most deliveries", "First lock ends", "Last lock ends"),
                    "No member has records.",
                ),
                Heading(
                    "deliveries",
                    "In flight by deliveries",
                    ("Deliveries", ">Records", "In partitions"),
                    "Nothing is in flight.",
                ),
                Heading(
                    "in_flight",
                    "Records in flight",
                    ("Records", "State", ">Deliveries", "Member", "Lock left"),
                    "Nothing is in flight, as far as the brokers tell: Kohort's do.",
                ),
            )
        case GroupType.CONSUMER:
            columns = ("Member", "Client", "Host", ">Epoch", "Protocol", "Partitions", "On the way to")
            return (Heading("members", "Members", columns, nobody), events, by_topic)
        case _:
            columns = ("Member", "Client", "Host", "Static name", "Partitions")
            return (Heading("members", "Members", columns, nobody), events, by_topic)


def group_view(
    report: GroupReport,
    history: History,
    trend: Trend,
    rates: Mapping[str, Rate] | None = None,
    times: TaskTimes | None = None,
    now_ms: int = 0,
    behind: Delay | None = None,
    events: GroupEvents | None = None,
    lags: PartitionLags | None = None,
    rebalances: int | None = None,
) -> View:
    """What the page shows.

    Args:
        report: the group.
        history, trend: of its lag.
        times: of a streams group: which member has had which task.
        rates: of a streams group: how quickly its topics are written and read, as far as that is known.
        now_ms: the time since 1970 by which locks have time left.
        behind: its lag in time.
        events: what has happened in the group.
        lags: of its partitions, over the last minutes.
        rebalances: of the last ten minutes; None if that isn't known.
    """
    group = report.group
    lines = chart(history.samples)
    rates, times = rates or {}, times or TaskTimes()
    texts = {
        "state": group.state or "not told",
        "state_tone": state_tone(group.state),
        "awaited": " ".join(sentence(each) for each in awaited(group)),
        "members_count": number(len(group.members)),
        "lag": number(report.total),
        "behind": delay_text(behind),
        "rebalances": number(rebalances),
        "trend": NOTHING if report.total is None else trend_text(trend),
        "coordinator": str(group.coordinator),
        "assignor": group.assignor or NOTHING,
        "epoch": NOTHING if group.epoch is None else str(group.epoch),
        "assignment_epoch": NOTHING if group.assignment_epoch is None else str(group.assignment_epoch),
        "topology_epoch": NOTHING if group.topology_epoch is None else str(group.topology_epoch),
        "partitions_note": " ".join(
            filter(
                None,
                (
                    _note(len(report.lag), "partition", "largest lag"),
                    f"Drawn are the {MOST_LINES} that lag most." if len(report.lag) > MOST_LINES else "",
                    sentence(where_it_begins(group.type, report.lag.values())),
                ),
            )
        ),
        "chart_points": lines.points,
        "chart_text": lines.text,
        "chart_most": lines.most,
    }
    if group.type is GroupType.STREAMS:
        texts |= _rate_texts(group, rates) | timeline_texts(times, member_names(group))
    makers: Mapping[str, Callable[[], Iterable[tuple[str, tuple[Cell, ...]]]]] = {
        "members": lambda: _members(group),
        "events": lambda: _events(events or GroupEvents()),
        "tasks": lambda: _tasks(group),
        "copies": lambda: _copies(group),
        "moves": lambda: _moves(group, times),
        "partitions": lambda: _partitions(report, lags or PartitionLags()),
        "topology": lambda: _topology(group, rates),
        "in_flight": lambda: _in_flight(report, now_ms),
        "holders": lambda: _holders(report, now_ms),
        "deliveries": lambda: _deliveries(report),
    }
    tables = {}
    for each in headings(group.type):
        rows = islice(makers[each.name](), MOST_ROWS)
        tables[each.name] = Table(dict(islice(rows, each.first)))
        if each.first is not None:
            tables[f"{each.name}_before"] = Table(dict(rows))
    return View({name: visible(text) for name, text in texts.items()}, tables)


def _note(rows: int, what: str, which: str) -> str:
    return f"The {MOST_ROWS:,} with the {which} of {several(rows, what)}." if rows > MOST_ROWS else ""


def _text(value: object) -> Cell:
    return Cell(NOTHING if value is None or value == "" else visible(str(value)))


def _members(group: GroupDescription) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    awaiting = why_awaited(group)
    for member in group.members:
        name = _text(member.member_id)
        if (why := awaiting.get(member.member_id)) is not None:
            name = Cell(f"{name.text} – waited for: {why}", tone="warn")
        client, host = _text(member.client_id), _text(member.host.removeprefix("/"))
        epoch = _text(member.epoch)
        partitions = _text(partitions_text(member.partitions) or NOTHING)
        match group.type:
            case GroupType.STREAMS:
                process = _text(None if member.streams is None else member.streams.process_id)
                yield (
                    member.member_id,
                    (name, client, host, process, epoch, _text(_tasks_to_come(member)), _text(_to_restore(member))),
                )
            case GroupType.SHARE:
                yield member.member_id, (name, client, host, epoch, partitions)
            case GroupType.CONSUMER:
                protocol = Cell("classic" if member.classic else "consumer")
                to_come = _text(_partitions_to_come(member))
                yield member.member_id, (name, client, host, epoch, protocol, partitions, to_come)
            case _:
                yield member.member_id, (name, client, host, _text(member.instance_id), partitions)


def _partitions_to_come(member: GroupMember) -> str | None:
    if member.target is None or member.target == member.partitions:
        return None
    return partitions_text(member.target) or NOTHING


def _tasks_to_come(member: GroupMember) -> str | None:
    """Active tasks and standbys of the target assignment, where they differ from those that the member has."""
    if member.streams is None:
        return None
    now, then = member.streams.tasks, member.streams.target_tasks
    parts = []
    for role in (Role.ACTIVE, Role.STANDBY):
        wanted = {task for task, has in then.items() if has is role}
        if wanted != {task for task, has in now.items() if has is role}:
            parts.append(f"{role.value} {partitions_text(sorted(wanted)) or NOTHING}")
    return ", ".join(parts) or None


def _to_restore(member: GroupMember) -> str | None:
    """Changelog records that the member's tasks have yet to restore, as far as it told."""
    return None if member.streams is None else number(member.streams.to_restore)


def _tasks(group: GroupDescription) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """A row a task: which member has it, in which role."""
    names = member_names(group)
    having: dict[TaskId, dict[Role, list[str]]] = {}
    for member in group.members:
        if member.streams is None:
            continue
        for task, role in member.streams.tasks.items():
            having.setdefault(task, {}).setdefault(role, []).append(names[member.member_id])
    for task in sorted(having):
        roles = having[task]
        cells = [_text(", ".join(roles.get(role, ()))) for role in (Role.ACTIVE, Role.STANDBY, Role.WARMUP)]
        if not roles.get(Role.ACTIVE):
            cells[0] = Cell("nobody", tone="warn")
        yield str(task), (_text(task), *cells)


def _rate_texts(group: GroupDescription, rates: Mapping[str, Rate]) -> dict[str, str]:
    """What stands in the boxes of the topology's picture, by their keys."""
    if group.topology is None:
        return {}
    texts = {}
    for name, part in group.topology.subtopologies.items():
        read = [rate.read for topic in part.inputs if (rate := rates.get(topic)) and rate.read is not None]
        texts[f"rate part {name}"] = f"reads {pace(sum(read))}" if read else ""
        for topic in (*part.inputs, *part.repartition_sinks):
            texts[f"rate topic {topic}"] = _written(rates.get(topic))
    return texts


def _written(rate: Rate | None) -> str:
    return "" if rate is None or rate.written is None else f"{pace(rate.written)} written"


def _rate_of(topic: str, rate: Rate | None) -> str:
    if rate is None:
        return ""
    parts = [_written(rate), "" if rate.read is None else f"{pace(rate.read)} read"]
    known = ", ".join(filter(None, parts))
    return f"{topic}: {known}" if known else ""


def _copies(group: GroupDescription) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """A row a standby or warm-up: how far it is, as far as its member told."""
    names = member_names(group)
    found = []
    for member in group.members:
        if member.streams is None:
            continue
        for task, role in member.streams.tasks.items():
            if role is not Role.ACTIVE:
                end = member.streams.task_end_offsets.get(task)
                found.append((task, member.member_id, role, member.streams.task_offsets.get(task), end))
    for task, member_id, role, offset, end in sorted(found, key=lambda each: each[:2]):
        left = records_left(offset, end)
        done = NOTHING if left is None else f"{100 * (end - left) // end} %" if left and end else "100 %"
        cells = _text(task), _text(names[member_id]), Cell(role.value), Cell(number(left)), Cell(done)
        yield f"{task} {member_id}", cells


def _moves(group: GroupDescription, times: TaskTimes) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """Active tasks that got another member, the last ones first."""
    names = member_names(group)
    gone = {each for move in times.moves for each in (move.source, move.target) if each is not None} - names.keys()
    called = {**short_names(gone), **names}
    for move in reversed(times.moves):
        sides = ("nobody" if each is None else called[each] for each in (move.source, move.target))
        yield str(move.number), (Cell(moment(move.at_ms)), _text(move.task), *map(_text, sides))


def _events(events: GroupEvents) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """What has happened, the last first."""
    for each in reversed(events.events):
        yield str(each.number), (Cell(moment(each.at_ms)), _text(each.text))


def _topology(group: GroupDescription, rates: Mapping[str, Rate]) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    if group.topology is None:
        return
    for name, part in group.topology.subtopologies.items():
        known = list(filter(None, (_rate_of(topic, rates.get(topic)) for topic in part.inputs)))
        cells = (part.inputs, known, part.repartition_sinks, [topic.name for topic in part.changelogs])
        yield name, (_text(name), *(_text(", ".join(each)) for each in cells))


def _partitions(report: GroupReport, lags: PartitionLags) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    owners, lines = report.group.owners(), lags.lines()
    names = short_names(member.member_id for member in report.group.members)
    rows: Iterable[tuple[TopicPartition, PartitionLag]] = report.lag.items()
    if len(report.lag) > MOST_ROWS:
        rows = sorted(report.lag.items(), key=lambda row: -(row[1].lag or 0))
    for at, lag in rows:
        who = ", ".join(member.instance_id or names[member.member_id] for member in owners.get(at, ()))
        yield (
            f"{at.topic}-{at.partition}",
            (
                Cell(visible(f"{at.topic}-{at.partition}"), topic_link(at.topic)),
                Cell(number(lag.committed)),
                Cell(number(lag.end)),
                Cell(number(lag.lag)),
                _line(lines.get(at)),
                *(() if report.group.type is GroupType.SHARE else (Cell(number(lag.uncommitted)),)),
                Cell("nobody", tone="warn") if not who and report.group.members else _text(who),
            ),
        )


def _line(line: Line | None) -> Cell:
    """A lag's line, and by how much it has grown."""
    if line is None:
        return Cell(NOTHING)
    return Cell(f"{line.grown:+,} in {duration(line.seconds)}", line=line.points)


def _in_flight(report: GroupReport, now_ms: int) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """Records of a share group that were handed out and aren't done."""
    names = _holders_names(report)
    for at, lag in report.lag.items():
        for each in lag.in_flight:
            first, last = each.first_offset, each.last_offset
            offsets = number(first) if first == last else f"{number(first)} to {number(last)}"
            yield (
                f"{at.topic}-{at.partition}:{first}",
                (
                    _text(f"{at.topic}-{at.partition}: {offsets}"),
                    _text(each.state),
                    Cell(number(each.delivery_count)),
                    _text(None if each.member_id is None else names[each.member_id]),
                    _lock_left(each.locked_until_ms, now_ms),
                ),
            )


def _holders_names(report: GroupReport) -> Mapping[str, str]:
    holders = {each.member_id for lag in report.lag.values() for each in lag.in_flight if each.member_id is not None}
    return short_names({*holders, *(member.member_id for member in report.group.members)})


def _lock_left(until_ms: int | None, now_ms: int) -> Cell:
    """How long a lock holds yet, by this machine's clock."""
    if until_ms is None:
        return Cell(NOTHING)
    return Cell(duration((until_ms - now_ms) / 1000)) if until_ms > now_ms else Cell("over", tone="warn")


def _holders(report: GroupReport, now_ms: int) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """A row a member that has records: how many, and how long its locks hold."""
    names = _holders_names(report)
    having: dict[str, list[InFlight]] = {}
    for lag in report.lag.values():
        for each in lag.in_flight:
            if each.member_id is not None:
                having.setdefault(each.member_id, []).append(each)
    for member_id in sorted(having):
        held = having[member_id]
        locks = [each.locked_until_ms for each in held if each.locked_until_ms is not None]
        yield (
            member_id,
            (
                _text(names[member_id]),
                Cell(number(sum(map(_records, held)))),
                Cell(number(max(each.delivery_count for each in held))),
                _lock_left(min(locks, default=None), now_ms),
                _lock_left(max(locks, default=None), now_ms),
            ),
        )


def _deliveries(report: GroupReport) -> Iterable[tuple[str, tuple[Cell, ...]]]:
    """A row a number of deliveries: how many records have had so many, those that are delivered most often first."""
    counts: dict[int, int] = {}
    where: dict[int, set[TopicPartition]] = {}
    for at, lag in report.lag.items():
        for each in lag.in_flight:
            counts[each.delivery_count] = counts.get(each.delivery_count, 0) + _records(each)
            where.setdefault(each.delivery_count, set()).add(at)
    for count in sorted(counts, reverse=True):
        yield (
            str(count),
            (Cell(number(count)), Cell(number(counts[count])), _text(partitions_text(sorted(where[count])))),
        )


def _records(each: InFlight) -> int:
    return each.last_offset - each.first_offset + 1
