"""What the instances' journals tell: who had which task when, how much was done, and how long a task stood still."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.spark.running.listener import STREAM, EpochDone, TasksNow

__all__ = ["ACTIVE", "RESTORING", "STANDBY", "WARMUP", "Life", "Span", "Timeline"]

ACTIVE: Final = "active"
RESTORING: Final = "restoring"
STANDBY: Final = "standby"
WARMUP: Final = "warm-up"


@dataclass(frozen=True, slots=True)
class Life:
    """All that an instance wrote into its journal, in order, and when it was killed (seconds since 1970), if it was."""

    name: str
    epochs: Sequence[EpochDone]
    tasks: Sequence[TasksNow]
    killed: float | None = None

    @property
    def last(self) -> float:
        """When it was heard of last."""
        return max([each.at for each in self.epochs[-1:]] + [each.at for each in self.tasks[-1:]], default=0.0)


@dataclass(frozen=True, slots=True)
class Span:
    """An instance had a task in a role from one moment to another."""

    instance: str
    task: str
    role: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lives of all instances, beside each other.

    Attributes:
        lives: one an instance.
        source: the topic whose records count as work; what the parts pass on to each other doesn't.
    """

    lives: Sequence[Life]
    source: str = "flights"
    _spans: list[Span] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        """Work out who had what."""
        end = max((life.last for life in self.lives), default=0.0)
        for life in self.lives:
            self._spans.extend(_spans(life, end if life.killed is None else life.killed))

    @property
    def spans(self) -> Sequence[Span]:
        """Who had which task when."""
        return self._spans

    @property
    def task_names(self) -> list[str]:
        """All tasks, in order."""
        return sorted({span.task for span in self._spans}, key=lambda task: [*map(int, task.split("_"))])

    @property
    def began(self) -> float:
        """When the first record was read."""
        return min(each.at - each.took_ms / 1000 for each in self._work())

    @property
    def ended(self) -> float:
        """When the last epoch of anybody was committed."""
        return max(each.at for life in self.lives for each in life.epochs)

    @property
    def records(self) -> int:
        """How many records of the source were done."""
        return sum(each.records for each in self._work())

    def rates(self, life: Life, width: float) -> tuple[list[float], list[float]]:
        """Records of the source a second, in pieces of `width` seconds: when they begin, and the rates.

        An epoch's records are spread evenly over the time that it took.
        """
        first, count = self.began, int((self.ended - self.began) / width) + 1
        done = [0.0] * count
        for epoch in self._work([life]):
            begin = max(first, epoch.at - max(epoch.took_ms, 1.0) / 1000)
            per_second = epoch.records / max(epoch.at - begin, 1e-3)
            for piece in range(int((begin - first) / width), min(count, int((epoch.at - first) / width) + 1)):
                low, high = first + piece * width, first + (piece + 1) * width
                done[piece] += per_second * max(0.0, min(high, epoch.at) - max(low, begin))
        return [first + piece * width for piece in range(count)], [each / width for each in done]

    def busiest(self, width: float) -> float:
        """The most records of the source that were done within `width` seconds by all, a second."""
        return max(map(sum, zip(*(self.rates(life, width)[1] for life in self.lives), strict=True)), default=0.0)

    def takeovers(self) -> dict[str, float]:
        """When each task of an instance that was killed was first worked on by another: seconds since the kill.

        Tasks for which nothing came afterwards are left out.
        """
        found = {}
        for dead in self.lives:
            if dead.killed is None:
                continue
            had = {span.task for span in self._spans if span.instance == dead.name and span.role == ACTIVE
                   and span.end >= dead.killed}  # fmt: skip
            for task in had:
                after = [
                    epoch.at
                    for life in self.lives
                    for epoch in life.epochs
                    if life is not dead and epoch.at > dead.killed and task in epoch.tasks
                ]
                if after:
                    found[task] = min(after) - dead.killed
        return found

    def longest_wait(self) -> float | None:
        """The longest time between two epochs of a task that stayed where it was, around the kill: in seconds.

        None if nobody was killed, or nothing stayed.
        """
        kills = [life.killed for life in self.lives if life.killed is not None]
        waits = []
        for life in self.lives if kills else ():
            if life.killed is None:
                for task in self._stayed(life, kills[0]):
                    times = [epoch.at for epoch in life.epochs if task in epoch.tasks]
                    around = [at for at in times if kills[0] - 10 <= at <= kills[0] + 20]
                    waits += [later - earlier for earlier, later in itertools.pairwise(around)]
        return max(waits, default=None)

    def _stayed(self, life: Life, moment: float) -> Iterable[str]:
        return {
            span.task
            for span in self._spans
            if span.instance == life.name and span.role == ACTIVE and span.begin < moment < span.end
            and span.task.startswith("0_")
        }  # fmt: skip

    def _work(self, lives: Sequence[Life] | None = None) -> list[EpochDone]:
        prefix = f"{self.source}-"
        return [
            each
            for life in (self.lives if lives is None else lives)
            for each in life.epochs
            if each.input == STREAM and each.records and any(_topic(at) == prefix for at in each.positions)
        ]


def _topic(partition: str) -> str:
    """The part of "flights-0" before the number."""
    return partition[: partition.rindex("-") + 1]


def _roles(now: TasksNow) -> dict[str, str]:
    roles = {**dict.fromkeys(now.standby, STANDBY), **dict.fromkeys(now.warmup, WARMUP)}
    roles |= dict.fromkeys(now.active, ACTIVE)
    roles |= dict.fromkeys(now.restoring, RESTORING)
    return roles


def _spans(life: Life, end: float) -> list[Span]:
    found = []
    running: dict[str, tuple[str, float]] = {}
    for now in life.tasks:
        roles = _roles(now)
        for task in [task for task, (role, _) in running.items() if roles.get(task) != role]:
            role, begin = running.pop(task)
            found.append(Span(life.name, task, role, begin, now.at))
        for task, role in roles.items():
            running.setdefault(task, (role, now.at))
    found += [Span(life.name, task, role, begin, max(begin, end)) for task, (role, begin) in running.items()]
    return found
