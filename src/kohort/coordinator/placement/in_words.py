"""Metrics of placements, and what moves, line by line for people: the same for commands and pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from kohort.coordinator.placement.metrics import Balance, Metrics, Restore, StateStores
from kohort.coordinator.placement.outcome import Move
from kohort.number_ranges import partitions_text
from kohort.plurals import several

_FEW_SUBTOPOLOGIES: Final = 12
"""So many have a line each; of more, those that are out of balance do."""


class Measured(NamedTuple):
    """A metric of a placement.

    Attributes:
        text: how much it is.
        off: what of it isn't as it should be; "" if all is.
    """

    text: str
    off: str = ""


Measure = Callable[[Metrics], Measured]


def state_measures(found: Sequence[Metrics]) -> Iterator[tuple[str, Measure]]:
    """Metrics of placements by themselves, by name; a name that begins with spaces is a part of the one above."""
    yield "active tasks of a member", lambda of: _balance(of.total)
    yield "  stateful", lambda of: _balance(of.stateful)
    names = list(dict.fromkeys(name for metrics in found for name in metrics.subtopologies))
    if len(names) > _FEW_SUBTOPOLOGIES:
        yield f"  worst of {len(names)} subtopologies", _worst
        names = [name for name in names if any(_imbalance(of, name) for of in found)][:_FEW_SUBTOPOLOGIES]
    for name in names:
        yield f"  subtopology {name}", partial(_subtopology, name)
    yield "state stores of a process", lambda of: Measured(_stores(of.state_stores))
    if any(of.unplaced for of in found):
        yield "tasks that nobody runs", lambda of: Measured(f"{of.unplaced:,}")
    if any(of.standbys_wanted for of in found):
        yield "standbys placed", lambda of: Measured(f"{of.standbys_placed:,} of {of.standbys_wanted:,}")
        for tag in dict.fromkeys(tag for metrics in found for tag in metrics.racks):
            yield f"  each in a {tag} of its own", partial(_rack, tag)


def change_measures(found: Sequence[Metrics], *, changes: bool) -> Iterator[tuple[str, Measure]]:
    """Metrics of the way to placements; `changes` if there was one before."""
    if changes:
        yield "tasks moved", lambda of: Measured(f"{of.moved:,} of {of.owned:,}")
        yield "  stateful", lambda of: Measured(f"{of.moved_stateful:,}")
        if any(of.owned < of.total.tasks for of in found):
            yield "tasks whose owner is gone, or that had none", lambda of: Measured(f"{of.total.tasks - of.owned:,}")
    yield "to restore", lambda of: Measured(restore_text(of.restore))
    if any(of.standbys_wanted for of in found):
        yield "  for standbys", lambda of: Measured(restore_text(of.standby_restore))


def restore_text(restore: Restore) -> str:
    """What is to restore: `1,000 records and 2 stores`."""
    parts = []
    if restore.records:
        parts.append(several(restore.records, "record"))
    if restore.stores:
        parts.append(several(restore.stores, "store"))
    return " and ".join(parts) or "nothing"


def moves_together(moves: Iterable[Move]) -> Iterator[tuple[str, str | None, str, str]]:
    """The moves of a subtopology from one member to another, together: tasks, source, target, what is to restore."""
    together: dict[tuple[str | None, str, str], list[Move]] = {}
    for move in moves:
        together.setdefault((move.source, move.target, move.task.subtopology), []).append(move)
    for (source, target, _), some in together.items():
        tasks = partitions_text(move.task for move in some)
        yield tasks, source, target, restore_text(sum((move.restore for move in some), Restore()))


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts m2 before m10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name)]


def range_text(least: int, most: int) -> str:
    """`2 to 3`, or `2`."""
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _stores(stores: StateStores) -> str:
    """Where processes differ in size, so do their shares, so the line has to show how even these are."""
    uneven = f", spread {float(stores.spread):.3g}" if stores.spread != stores.most - stores.least else ""
    return range_text(stores.least, stores.most) + uneven


def _subtopology(name: str, metrics: Metrics) -> Measured:
    return _balance(metrics.subtopologies[name]) if name in metrics.subtopologies else Measured("")


def _worst(metrics: Metrics) -> Measured:
    return Measured(_off(max(balance.imbalance for balance in metrics.subtopologies.values())))


def _imbalance(metrics: Metrics, name: str) -> int:
    return metrics.subtopologies[name].imbalance if name in metrics.subtopologies else 0


def _rack(tag: str, metrics: Metrics) -> Measured:
    spread = metrics.racks.get(tag)
    return Measured("" if spread is None else f"{spread.apart:,} of {spread.possible:,} possible")


def _balance(balance: Balance) -> Measured:
    return Measured(range_text(balance.least, balance.most), _off(balance.imbalance) if balance.imbalance else "")


def _off(imbalance: int) -> str:
    return f"{imbalance:,} out of balance" if imbalance else "balanced"
