"""What is measured of a contender: how fast it restores, and how soon it is there again with what is on the disk."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from benchmarks.pipeline import tree
from benchmarks.pipeline.measures import each_second
from benchmarks.restore.contenders import Contender, Job
from benchmarks.restore.process import Process

RESTARTS = 3
"""After a clean end."""


@dataclass(frozen=True)
class Restored:
    """A restore into an empty store.

    Attributes:
        records: of the changelog.
        seconds: from its start to its end.
        cpu, broker_cpu: processor time meanwhile, of the contender and of the broker.
        memory: the most that it had resident, MiB.
    """

    records: int
    seconds: float
    cpu: float
    broker_cpu: float
    memory: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return each_second(self.records, self.seconds)


@dataclass(frozen=True)
class Restarted:
    """A restart with the state on the disk; in s, from the opening of the stores until they have all of the changelog.

    Attributes:
        killed: after SIGKILL.
        closed: after a clean end, the median.
        process: the same from the start of the process.
    """

    killed: float
    closed: float
    process: float


def restore(contender: Contender, job: Job, broker: int) -> Restored:
    """Restore into a directory that is empty; in the end it is killed.

    Args:
        broker: its process id.
    """
    with Process(contender, job) as process, tree.Watch(process.pid) as watch:
        start = process.reached("restoring")
        before = tree.cpu_seconds([broker])
        end = process.reached("restored")
        broker_cpu = tree.cpu_seconds([broker]) - before
        process.reached("ready")
    return Restored(job.keys, end.at - start.at, end.cpu - start.cpu, broker_cpu, watch.peak)


def restart(contender: Contender, job: Job, restarts: int = RESTARTS) -> Restarted:
    """Start it again where it was killed, and then so many times, at least once, where it was ended."""
    (killed, _), *closed = (_start_again(contender, job) for _ in range(1 + restarts))
    opened, process = zip(*closed, strict=True)
    return Restarted(killed, statistics.median(opened), statistics.median(process))


def _start_again(contender: Contender, job: Job) -> tuple[float, float]:
    with Process(contender, job) as process:
        opening, ready = process.reached("opening"), process.reached("ready")
        process.stop()
        return ready.at - opening.at, ready.at - process.launched
