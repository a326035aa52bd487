"""A process's disk: stores with their positions, which survive it, and may lose what was written last.

They are behind at times (torn: the machine has crashed), or gone (wiped), and never ahead of what is committed: nothing
is written to them before that. Only brokers that lose acknowledged records could make them so, and these aren't here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError

_REMEMBERED = 6


@dataclass(eq=False)
class Store:
    """A store.

    Attributes:
        rows: what it has.
        position: the offset in its changelog after that; None: nothing is known.
        writer: who may write to it now: "changelog" or "epoch"; None if it is closed.
    """

    rows: dict[str, int] = field(default_factory=dict)
    position: int | None = None
    writer: str | None = None
    _undo: list[tuple[int | None, dict[str, int | None]]] = field(default_factory=list)

    def write(self, writer: str, rows: Mapping[str, int | None], position: int) -> None:
        """Rows and position, all or nothing. A value of None takes a row out."""
        if self.writer != writer:
            raise InvariantError(f"one writer: a store is written to by {writer}, and is {self.writer}'s")
        if position < (self.position or 0):
            raise InvariantError(f"a store goes back from {self.position} to {position}")
        self._undo = [*self._undo[-_REMEMBERED:], (self.position, {key: self.rows.get(key) for key in rows})]
        self._take(rows)
        self.position = position

    def tear(self, rng: Random) -> None:
        """The machine has crashed: the last writes are lost, and none before them."""
        for _ in range(rng.randrange(1 + len(self._undo))):
            self.position, before = self._undo.pop()
            self._take(before)

    def _take(self, rows: Mapping[str, int | None]) -> None:
        for key, value in rows.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value


class Disk:
    """Stores by task and name."""

    def __init__(self) -> None:
        self.stores: dict[TaskId, dict[str, Store]] = {}
        self.open: dict[TaskId, dict[str, Store]] = {}

    def take(self, task: TaskId, names: list[str]) -> dict[str, Store]:
        """Open a task's stores."""
        if task in self.open:
            raise InvariantError(f"stores in turn: those of {task} are opened twice")
        stores = self.stores.setdefault(task, {})
        for name in names:
            stores.setdefault(name, Store()).writer = "nobody"
        self.open[task] = stores
        return stores

    def release(self, task: TaskId) -> int | None:
        """Close a task's stores; how far they are, over all changelogs. None if they aren't open."""
        stores = self.open.pop(task, {})
        for store in stores.values():
            store.writer = None
        places = [store.position for store in stores.values() if store.position is not None]
        return sum(places) if places else None

    def power_off(self) -> None:
        """The process is gone."""
        for task in list(self.open):
            self.release(task)

    def wipe(self) -> None:
        """Another machine, or another disk."""
        self.stores.clear()
