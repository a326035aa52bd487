"""Places the tasks of streams groups in another process, while heartbeats go on."""

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
from kohort.coordinator.placement.or_tools import is_installed
from kohort.coordinator.streams.environment import PlacementJob
from kohort.protocol.errors import shown

log = logging.getLogger("kohort.broker.streams")

TINY: Final = 100
"""Size of a group (as `SMALL`) that is placed at once where no solver is needed, which takes up to 3 ms."""

SMALL: Final = 1000
"""Size of a group (tasks, members and standbys) whose placement takes a few ms."""

WAIT_SECONDS: Final = 0.01
"""How long to wait for a small group's placement; without waiting, its members get their tasks a heartbeat later."""

WAIT_SECONDS_PER_TURN: Final = 0.05
"""The most waiting and placing in one turn of the loop, where many groups are placed at once."""

IDLE_SECONDS: Final = 300.0
"""How long an idle process is kept."""


class Placer:
    """Takes placement jobs, and returns a placement at once or later.

    A separate process solves all jobs but those of one member, which gets all tasks, and of tiny groups that need no
    solver. Small groups take so little time that their placement is waited for.

    Attributes:
        on_placed: called later with a job, and its placement or None if it failed.
        solved, failed: number of jobs by assignor.
        seconds: total time of jobs, waiting included, by assignor.
        pending: jobs whose placement comes later.
        ready: whether the process runs, so that small groups are placed at once.
    """

    def __init__(self, solver: Solver | None = None) -> None:
        self.on_placed: list[Callable[[PlacementJob, Placement | None], None]] = []
        self._solver = solver or Solver()
        self._thread = ThreadPoolExecutor(1, "kohort-placement")
        self._on_ready: list[Callable[[], None]] = []
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._waited = 0.0  # s, in this turn of the loop
        self.solved: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.pending = 0
        self.ready = False
        self._told = False

    def __call__(self, job: PlacementJob) -> Placement | None:
        """Returns a group's placement, or None if `on_placed` is called with it later (never once the broker stops)."""
        if self._stopped:
            return None
        self._restart_idle_timer()
        self._tell_once()
        began = time.perf_counter()
        size = _size(job.group)
        placement = None
        if len(job.group.members) == 1 and size <= SMALL:
            placement = job.run()
        elif size <= TINY and self._waited < WAIT_SECONDS_PER_TURN:
            placement = job.run_without_solver()
            self._add_waiting(began)
        if placement is not None:
            self._count(job, began)
            return placement
        solving = self._thread.submit(self._solver.solve, job.assignor, job.group)
        if self.ready and not self.pending and self._waited < WAIT_SECONDS_PER_TURN and size <= SMALL:
            done = wait((solving,), WAIT_SECONDS).done
            self._add_waiting(began)
            if done and solving.exception() is None:
                self._count(job, began)
                return solving.result()
        self.pending += 1
        asyncio.wrap_future(solving).add_done_callback(functools.partial(self._done, job, began))
        return None

    def _tell_once(self) -> None:
        """Not at the start: most brokers have no streams groups."""
        if not self._told and not is_installed():
            log.info(
                "OR-Tools isn't installed: streams groups are placed by sticky, small ones by optimal; "
                "pip install 'kohort[placement]'"
            )
        self._told = True

    def start(self, then: Callable[[], None]) -> None:
        """Starts the process, which takes a while, and then calls `then`, unless the broker stops first."""
        if self.ready:
            then()
            return
        self._on_ready.append(then)
        if len(self._on_ready) == 1 and not self._stopped:
            starting = asyncio.wrap_future(self._thread.submit(self._solver.start))
            starting.add_done_callback(self._started)

    def stop(self) -> None:
        """Stops the process; pending jobs are dropped."""
        self._stopped = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._solver.stop()
        self._thread.shutdown(cancel_futures=True)

    def _add_waiting(self, began: float) -> None:
        if not self._waited:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        self._waited += time.perf_counter() - began

    def _begin_turn(self) -> None:
        self._waited = 0.0

    def _started(self, starting: asyncio.Future[None]) -> None:
        error = None if starting.cancelled() else starting.exception()
        if self._stopped:
            return
        if error is not None:
            log.error("the process that places tasks could not be started error=%s", error)
        self.ready = error is None
        self._restart_idle_timer()
        callbacks, self._on_ready = self._on_ready, []
        for callback in callbacks:
            callback()

    def _done(self, job: PlacementJob, began: float, solving: asyncio.Future[Placement]) -> None:
        self.pending -= 1
        error = None if solving.cancelled() else solving.exception()
        if self._stopped:
            return
        self._restart_idle_timer()
        if error is not None:
            self.failed[job.assignor] += 1
            log.error(
                "tasks could not be placed group=%s assignor=%s error=%s", shown(job.group_id), job.assignor, error
            )
        else:
            self._count(job, began)
        for listener in self.on_placed:
            listener(job, None if error is not None else solving.result())

    def _count(self, job: PlacementJob, began: float) -> None:
        self.solved[job.assignor] += 1
        self.seconds[job.assignor] += time.perf_counter() - began

    def _restart_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._idle_timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._stop_idle)

    def _stop_idle(self) -> None:
        self._idle_timer = None
        if not self.pending and not self._on_ready:
            self.ready = False
            self._thread.submit(self._solver.stop_process)


def _size(group: Group) -> int:
    tasks = sum(part.partitions for part in group.subtopologies)
    standbys = group.standbys * sum(part.partitions for part in group.subtopologies if part.state_stores)
    return len(group.members) + tasks + 4 * standbys  # standbys take longest
