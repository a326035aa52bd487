"""Pauses of tasks: the times between their epochs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from kohort.spark.monitoring.events import EpochDone


@dataclass(frozen=True)
class Pause:
    """The time between two epochs of a task, on one instance or from one to the next.

    Attributes:
        task: "0_1".
        before, after: the instances of the two epochs.
        committed: when the first was committed, in seconds since 1970.
        began: when the second began.
        resumed: when the second was committed.
    """

    task: str
    before: str
    after: str
    committed: float
    began: float
    resumed: float

    @property
    def seconds(self) -> float:
        """From commit to commit: how long the task had no new output."""
        return self.resumed - self.committed

    @property
    def idle(self) -> float:
        """Seconds from the commit until the next epoch began; 0 if they overlap."""
        return max(self.began - self.committed, 0.0)

    @property
    def moved(self) -> bool:
        """Whether the task moved to another instance."""
        return self.before != self.after


def pauses_between(epochs: Iterable[tuple[str, EpochDone]]) -> Iterator[Pause]:
    """The pauses between successive epochs of each task, from epochs with their instances in the order of commits."""
    by_task: dict[str, list[tuple[str, EpochDone]]] = {}
    for instance, done in epochs:
        for task in done.tasks:
            by_task.setdefault(task, []).append((instance, done))
    for task, own in by_task.items():
        for (before, first), (after, second) in pairwise(own):
            yield Pause(task, before, after, first.at, second.at - second.took_ms / 1000, second.at)
