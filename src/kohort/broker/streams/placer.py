"""Places the tasks of streams groups, so that heartbeats go on meanwhile."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

from kohort.broker.streams.solver import Solver
from kohort.coordinator.placement.model import Group, Placement
from kohort.coordinator.streams.environment import PlacementJob
from kohort.protocol.errors import shown

__all__ = ["Placer"]

log = logging.getLogger("kohort.broker.streams")

SMALL: Final = 1000
"""Tasks, members and copies of a group that is probably placed within a few ms."""

PATIENCE_SECONDS: Final = 0.01
"""How long a small group's tasks are waited for. Members that come for them would have to come again otherwise."""

TURN_SECONDS: Final = 0.05
"""How long is waited at most in one turn of the loop, where many groups' tasks are placed at once."""

REST_SECONDS: Final = 300.0
"""How long a process is kept that nobody needs."""


class Placer:
    """Takes jobs, and gives a placement at once or later.

    All are solved in a process of their own. A small group's placement is there so soon that it is waited for.

    Args:
        placed: called later with a job, and the placement or None if none came of it.
        solver: the process.

    Attributes:
        solved, failed: jobs done and jobs that nothing came of, by assignor.
        seconds: the time that jobs took, waiting included, by assignor.
        under_way: jobs whose placement comes later.
        ready: whether the process runs, so that small groups are placed at once.
    """

    def __init__(self, placed: Callable[[PlacementJob, Placement | None], None], solver: Solver | None = None) -> None:
        self._placed = placed
        self._solver = solver or Solver()
        self._thread = ThreadPoolExecutor(1, "kohort-placement")
        self._eager: list[Callable[[], None]] = []
        self._resting: asyncio.TimerHandle | None = None
        self._stopped = False
        self._waited = 0.0  # s, in this turn of the loop
        self.solved: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.under_way = 0
        self.ready = False

    def __call__(self, job: PlacementJob) -> Placement | None:
        """Place a group's tasks: at once, or None and later; never when the broker stops first."""
        if self._stopped:
            return None
        self._tire()
        began = time.perf_counter()
        solving = self._thread.submit(self._solver.solve, job.assignor, job.group)
        if self.ready and not self.under_way and self._waited < TURN_SECONDS and _size(job.group) <= SMALL:
            done = wait((solving,), PATIENCE_SECONDS).done
            self._waited_since(began)
            if done and solving.exception() is None:
                self._count(job, began)
                return solving.result()
        self.under_way += 1
        asyncio.wrap_future(solving).add_done_callback(functools.partial(self._done, job, began))
        return None

    def get_ready(self, then: Callable[[], None]) -> None:
        """Start the process, which takes a while, and then call `then`; unless the broker stops first."""
        if self.ready:
            then()
            return
        self._eager.append(then)
        if len(self._eager) == 1 and not self._stopped:
            starting = asyncio.wrap_future(self._thread.submit(self._solver.start))
            starting.add_done_callback(self._started)

    def stop(self) -> None:
        """Give up what is under way."""
        self._stopped = True
        if self._resting is not None:
            self._resting.cancel()
        self._solver.stop()
        self._thread.shutdown(cancel_futures=True)

    def _waited_since(self, began: float) -> None:
        if not self._waited:
            asyncio.get_running_loop().call_soon(self._turn)
        self._waited += time.perf_counter() - began

    def _turn(self) -> None:
        self._waited = 0.0

    def _started(self, starting: asyncio.Future[None]) -> None:
        error = None if starting.cancelled() else starting.exception()
        if self._stopped:
            return
        if error is not None:
            log.error("the process that places tasks could not be started error=%s", error)
        self.ready = error is None
        self._tire()
        eager, self._eager = self._eager, []
        for then in eager:
            then()

    def _done(self, job: PlacementJob, began: float, solving: asyncio.Future[Placement]) -> None:
        self.under_way -= 1
        error = None if solving.cancelled() else solving.exception()
        if self._stopped:
            return
        self._tire()
        if error is not None:
            self.failed[job.assignor] += 1
            log.error(
                "tasks could not be placed group=%s assignor=%s error=%s", shown(job.group_id), job.assignor, error
            )
        else:
            self._count(job, began)
        self._placed(job, None if error is not None else solving.result())

    def _count(self, job: PlacementJob, began: float) -> None:
        self.solved[job.assignor] += 1
        self.seconds[job.assignor] += time.perf_counter() - began

    def _tire(self) -> None:
        """Let the process rest some time from now, unless there is more to do."""
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(REST_SECONDS, self._rest)

    def _rest(self) -> None:
        self._resting = None
        if not self.under_way and not self._eager:
            self.ready = False
            self._thread.submit(self._solver.rest)


def _size(group: Group) -> int:
    tasks = sum(part.partitions for part in group.subtopologies)
    copies = group.standbys * sum(part.partitions for part in group.subtopologies if part.state_stores)
    return len(group.members) + tasks + 4 * copies  # copies are what takes longest
