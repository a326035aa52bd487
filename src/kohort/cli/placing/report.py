"""Tables of placements and their metrics, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kohort.cli.client.fitting import FittingTable
from kohort.cli.terminal import printable
from kohort.coordinator.placement.in_words import Measured, change_measures, moves_together, natural, state_measures
from kohort.coordinator.placement.model import Member
from kohort.coordinator.placement.outcome import Comparison, Move, Outcome
from kohort.number_ranges import partitions_text
from kohort.streams.tasks import Role, TaskId

_MOST_MOVES: Final = 40
"""Lines of the table of moves; `--json` has them all."""


def placement_table(title: str, outcome: Outcome, now: Outcome | None) -> Table:
    """Returns a line for each member: its tasks, and how they differ from now. Members that leave have one, too."""
    members = {member.id: member for side in (now, outcome) if side is not None for member in side.group.members}
    stay = {member.id for member in outcome.group.members}
    columns = _member_columns(list(members.values()), outcome.group.rack_tags)
    placed = outcome.placement.by_member()
    before = {} if now is None else now.placement.by_member()
    table = FittingTable(
        title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for header, _cell in columns:
        table.add_column(header, overflow="fold")
    table.add_column("Tasks", justify="right")
    table.add_column("Active", overflow="fold")
    if now is not None:
        table.add_column("Gains", overflow="fold", style="green")
        table.add_column("Loses", overflow="fold", style="red")
    if outcome.placement.standby:
        table.add_column("Standby", overflow="fold", style="dim")
    for member in sorted(members.values(), key=lambda member: (natural(member.process), natural(member.id))):
        has, had = (_in_role(side.get(member.id, {}), Role.ACTIVE) for side in (placed, before))
        cells = [cell(member) for _, cell in columns]
        cells += [str(len(has)), partitions_text(has)] if member.id in stay else ["", "gone"]
        if now is not None:
            cells += [partitions_text(has - had), partitions_text(had - has)]
        if outcome.placement.standby:
            cells.append(partitions_text(_in_role(placed.get(member.id, {}), Role.STANDBY)))
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _in_role(tasks: Mapping[TaskId, Role], role: Role) -> set[TaskId]:
    return {task for task, has in tasks.items() if has is role}


def metrics_table(comparison: Comparison) -> Table:
    """Returns a line for each metric, with a column for now and for each assignor."""
    now = None if comparison.now is None else comparison.now.metrics
    placed = {name: outcome.metrics for name, outcome in comparison.outcomes.items()}
    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("", *(() if now is None else ("now",)), *placed):
        table.add_column(header, overflow="fold")
    found = [*placed.values()] if now is None else [now, *placed.values()]
    for name, measure in state_measures(found):
        table.add_row(escape(printable(name)), *(_cell(measure(of)) for of in found))
    for name, measure in change_measures(list(placed.values()), changes=now is not None):
        table.add_row(name, *(() if now is None else ("",)), *(_cell(measure(of)) for of in placed.values()))
    return table


def moves_table(moves: Sequence[Move]) -> Table:
    """A line for the tasks that move from one member to another, and what that costs."""
    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("Moves", "From", "To", "To restore"):
        table.add_column(header, overflow="fold")
    lines = list(moves_together(moves))
    for tasks, source, target, restore in lines[:_MOST_MOVES]:
        table.add_row(*(Text(printable(cell)) for cell in (tasks, source or "nobody", target, restore)))
    if len(lines) > _MOST_MOVES:
        table.add_row(f"and {len(lines) - _MOST_MOVES:,} more; --json has them all")
    return table


def _member_columns(members: Iterable[Member], rack_tags: Sequence[str]) -> list[tuple[str, Callable[[Member], str]]]:
    """Columns that identify a member: its process only if that isn't its own, and its racks if they count."""
    columns: list[tuple[str, Callable[[Member], str]]] = []
    if any(member.process not in ("", member.id) for member in members):
        columns.append(("Process", lambda member: member.process))
    columns.append(("Member", lambda member: member.id))
    return columns + [(printable(tag), partial(_tag, tag)) for tag in rack_tags]


def _tag(tag: str, member: Member) -> str:
    return member.tags.get(tag, "")


def _cell(measured: Measured) -> str:
    return f"{measured.text}, [red]{measured.off}[/]" if measured.off else measured.text
