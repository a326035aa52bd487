"""Tables of placements and their metrics, for people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from kohort.cli.client.fitting import FittingTable
from kohort.cli.placing.outcome import Comparison, Move, Outcome
from kohort.cli.terminal import printable
from kohort.coordinator.placement.metrics import Balance, Metrics, Restore, StateStores
from kohort.coordinator.placement.model import Member
from kohort.number_ranges import partitions_text
from kohort.plurals import several
from kohort.streams.tasks import Role, TaskId

_MOST_MOVES: Final = 40
"""Lines of the table of moves; `--json` has them all."""

_FEW_SUBTOPOLOGIES: Final = 12
"""So many have a line each in the table of metrics; of more, those that are out of balance do."""


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
    for member in sorted(members.values(), key=lambda member: (_natural(member.process), _natural(member.id))):
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
    for name, cell in _state_measures(found):
        table.add_row(escape(printable(name)), *map(cell, found))
    for name, cell in _change_measures(list(placed.values()), changes=now is not None):
        table.add_row(name, *(() if now is None else ("",)), *map(cell, placed.values()))
    return table


def moves_table(moves: Sequence[Move]) -> Table:
    """A line for the tasks that move from one member to another, and what that costs."""
    table = FittingTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("Moves", "From", "To", "To restore"):
        table.add_column(header, overflow="fold")
    lines = list(_moves(moves))
    for cells in lines[:_MOST_MOVES]:
        table.add_row(*(Text(printable(cell)) for cell in cells))
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


def _state_measures(found: Sequence[Metrics]) -> Iterator[tuple[str, Callable[[Metrics], str]]]:
    """Metrics of a placement by itself."""
    yield "active tasks of a member", lambda of: _balance(of.total)
    yield "  stateful", lambda of: _balance(of.stateful)
    names = list(dict.fromkeys(name for metrics in found for name in metrics.subtopologies))
    if len(names) > _FEW_SUBTOPOLOGIES:
        yield f"  worst of {len(names)} subtopologies", _worst
        names = [name for name in names if any(_imbalance(of, name) for of in found)][:_FEW_SUBTOPOLOGIES]
    for name in names:
        yield f"  subtopology {name}", partial(_subtopology, name)
    yield "state stores of a process", lambda of: _stores(of.state_stores)
    if any(of.unplaced for of in found):
        yield "tasks that nobody runs", lambda of: f"{of.unplaced:,}"
    if any(of.standbys_wanted for of in found):
        yield "standbys placed", lambda of: f"{of.standbys_placed:,} of {of.standbys_wanted:,}"
        for tag in dict.fromkeys(tag for metrics in found for tag in metrics.racks):
            yield f"  each in a {tag} of its own", partial(_rack, tag)


def _change_measures(found: Sequence[Metrics], changes: bool) -> Iterator[tuple[str, Callable[[Metrics], str]]]:
    """Metrics of the way to a placement; `changes` if there was one before."""
    if changes:
        yield "tasks moved", lambda of: f"{of.moved:,} of {of.owned:,}"
        yield "  stateful", lambda of: f"{of.moved_stateful:,}"
        if any(of.owned < of.total.tasks for of in found):
            yield "tasks whose owner is gone, or that had none", lambda of: f"{of.total.tasks - of.owned:,}"
    yield "to restore", lambda of: _restore(of.restore)
    if any(of.standbys_wanted for of in found):
        yield "  for standbys", lambda of: _restore(of.standby_restore)


def _stores(stores: StateStores) -> str:
    """Where processes differ in size, so do their shares, so the line has to show how even these are."""
    uneven = f", spread {float(stores.spread):.3g}" if stores.spread != stores.most - stores.least else ""
    return _range(stores.least, stores.most) + uneven


def _subtopology(name: str, metrics: Metrics) -> str:
    return _balance(metrics.subtopologies[name]) if name in metrics.subtopologies else ""


def _worst(metrics: Metrics) -> str:
    return _off(max(balance.imbalance for balance in metrics.subtopologies.values()))


def _imbalance(metrics: Metrics, name: str) -> int:
    return metrics.subtopologies[name].imbalance if name in metrics.subtopologies else 0


def _rack(tag: str, metrics: Metrics) -> str:
    spread = metrics.racks.get(tag)
    return "" if spread is None else f"{spread.apart:,} of {spread.possible:,} possible"


def _balance(balance: Balance) -> str:
    off = f", [red]{_off(balance.imbalance)}[/]" if balance.imbalance else ""
    return _range(balance.least, balance.most) + off


def _off(imbalance: int) -> str:
    return f"{imbalance:,} out of balance" if imbalance else "balanced"


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _restore(restore: Restore) -> str:
    parts = []
    if restore.records:
        parts.append(several(restore.records, "record"))
    if restore.stores:
        parts.append(several(restore.stores, "store"))
    return " and ".join(parts) or "nothing"


def _moves(moves: Sequence[Move]) -> Iterator[tuple[str, str, str, str]]:
    """The moves of a subtopology from one member to another, together."""
    together: dict[tuple[str | None, str, str], list[Move]] = {}
    for move in moves:
        together.setdefault((move.source, move.target, move.task.subtopology), []).append(move)
    for (source, target, _), some in together.items():
        tasks = partitions_text(move.task for move in some)
        yield tasks, source or "nobody", target, _restore(sum((move.restore for move in some), Restore()))


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts m2 before m10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name)]
