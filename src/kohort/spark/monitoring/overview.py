"""What an instance does now, gathered from its events: its state, rates, lags and totals by subtopology."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.spark.monitoring.events import EpochDone, Listener, Restoring, TasksNow
from kohort.spark.monitoring.lag import RecordsLag
from kohort.streams.tasks import TaskId

_RATE_OVER: Final = 10.0  # seconds
_FAILING_FOR: Final = 30.0  # seconds


@dataclass
class SubtopologyTotals:
    """What a subtopology has done since the start.

    Attributes:
        epochs, records, bytes, out_records, dropped, late: sums; `reasons` counts the dropped records by reason.
        again: how many of the records were rows that the application had sent itself, to a repartition topic.
        lag: records left to read, those of tables too, as of the last epoch.
        positions: the offsets that its tasks read next, by "topic-partition".
        last: its last epoch.
    """

    last: EpochDone
    epochs: int = 0
    records: int = 0
    again: int = 0
    bytes: int = 0
    out_records: int = 0
    dropped: int = 0
    late: int = 0
    lag: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    _recent: deque[tuple[float, float, int, bool]] = field(default_factory=deque)

    def add(self, done: EpochDone) -> None:
        self.last = done
        self.epochs += 1
        self.records += done.records
        self.again += done.records if done.again else 0
        self.bytes += done.bytes
        self.out_records += done.out_records
        self.dropped += done.dropped
        self.reasons.update(done.reasons)
        self.late += done.late
        self.lag = done.lag
        self.positions.update(done.positions)
        self._recent.append((done.at, done.took_ms / 1000, done.records, done.again))

    def rate(self, now: float, *, again: bool = True) -> float:
        """Records a second, since the first epoch that was committed in the last ten seconds began.

        Args:
            again: whether to count rows that the application has sent itself, too.
        """
        while self._recent and self._recent[0][0] < now - _RATE_OVER:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        at, took, *_ = self._recent[0]
        return sum(records for _, _, records, sent in self._recent if again or not sent) / max(now - at + took, 0.001)


class Overview(Listener):
    """What an instance does now, for /tasks, /health and the live line.

    Args:
        clock: returns seconds since 1970.
        measured_lags: returns the current lags of subtopologies; those that it lacks are as of their last epochs.

    Attributes:
        step: what its start has come to; None if that isn't known, or it has begun.
        now: the tasks; None until they are known.
        subtopologies: the totals by id, in the order of first epochs.
        restores: the restores that aren't done, by (task, store).
        reason: why the instance waits; None if it doesn't.
        failure: the last failure and its time; None once an epoch was committed since.
        group_lag: records that the group had left to read when the instance left it; None while it hasn't.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, measured_lags: Callable[[], Mapping[str, RecordsLag]] = dict
    ) -> None:
        self.clock = clock
        self._measured_lags = measured_lags
        self.step: str | None = None
        self.now: TasksNow | None = None
        self.subtopologies: dict[str, SubtopologyTotals] = {}
        self.restores: dict[tuple[str, str], Restoring] = {}
        self.reason: str | None = None
        self.failure: tuple[float, str] | None = None
        self.group_lag: int | None = None

    def measures(self, lags: Callable[[], Mapping[str, RecordsLag]]) -> None:
        """Takes what returns the current lags from now on."""
        self._measured_lags = lags

    def starting(self, step: str) -> None:
        self.step = step

    def epoch(self, done: EpochDone) -> None:
        if done.subtopology not in self.subtopologies:
            self.subtopologies[done.subtopology] = SubtopologyTotals(done)
        self.subtopologies[done.subtopology].add(done)
        self.failure = None

    def tasks(self, now: TasksNow) -> None:
        self.now, self.step = now, None
        running = {TaskId.parse(task).subtopology for task in now.active}
        for subtopology, totals in self.subtopologies.items():
            if totals.last.tasks and subtopology not in running:  # its lag is another instance's now
                totals.lag = 0
                totals.positions.clear()
        restoring = {*now.restoring, "global"}
        self.restores = {key: restore for key, restore in self.restores.items() if key[0] in restoring}

    def restoring(self, progress: Restoring) -> None:
        key = (progress.task, progress.store)
        if progress.done:
            self.restores.pop(key, None)
        else:
            self.restores[key] = progress

    def waiting(self, reason: str | None) -> None:
        self.reason = reason

    def failed(self, text: str) -> None:
        self.failure = (self.clock(), text)

    def left(self, group_lag: int) -> None:
        self.group_lag = group_lag

    # Sums ------------------------------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """Records read since the start, of topics that are the user's: each once."""
        return sum(totals.records - totals.again for totals in list(self.subtopologies.values()))

    @property
    def again(self) -> int:
        """Rows read since the start that the application had sent itself, to repartition topics."""
        return sum(totals.again for totals in list(self.subtopologies.values()))

    @property
    def lag(self) -> int:
        """Records left to read by this instance's tasks; those of other instances have their own."""
        return sum(self.lags().values())

    def lags(self) -> dict[str, int]:
        """The same by subtopology: as measured now, else as of its last epoch."""
        last = {subtopology: totals.lag for subtopology, totals in list(self.subtopologies.items())}
        return last | {subtopology: lag.records for subtopology, lag in self._measured_lags().items()}

    def lag_ages(self) -> dict[str, float]:
        """Seconds since the lag of each subtopology was measured; those whose lag isn't measured are left out."""
        now = self.clock()
        return {subtopology: max(0.0, now - lag.at) for subtopology, lag in self._measured_lags().items()}

    def rate(self) -> float:
        """Records a second, over the last ten seconds, of topics that are the user's."""
        now = self.clock()
        return sum(totals.rate(now, again=False) for totals in list(self.subtopologies.values()))

    def state(self) -> str:
        """Returns starting, running, restoring, waiting, stopped (a subtopology is) or failing."""
        if self.failure is not None and self.clock() - self.failure[0] < _FAILING_FOR:
            return "failing"
        if self.now is not None and self.now.stopped:
            return "stopped"
        if self.reason is not None:
            return "waiting"
        if self.now is None:
            return "starting"
        if self.now.active and set(self.now.active) <= set(self.now.restoring):
            return "restoring"
        return "running"

    def why_unready(self) -> str | None:
        """Why it doesn't run with all the tasks that it has: its state, or "restoring"; None if it does."""
        state = self.state()
        if state != "running":
            return state
        return "restoring" if self.restores or (self.now is not None and self.now.restoring) else None

    # Pages -----------------------------------------------------------------------------------------------------

    def health_page(self) -> dict[str, Any]:
        return {
            "status": self.state(),
            "reason": self.reason,
            "failure": None if self.failure is None else self.failure[1],
            "stopped": {} if self.now is None else dict(self.now.stopped),
            "records": self.records,
            "lag": self.lag,
            "lag_age_s": round(max(self.lag_ages().values(), default=0.0), 1),
        }

    def tasks_page(self) -> dict[str, Any]:
        now = self.now
        clock, lags = self.clock(), self.lags()
        return {
            "status": self.state(),
            "active": [] if now is None else list(now.active),
            "restoring": [
                {
                    "task": restore.task,
                    "store": restore.store,
                    "position": restore.position,
                    "end": restore.end,
                    "remaining": restore.remaining,
                }
                for restore in self.restores.values()
            ],
            "closing": [] if now is None else list(now.closing),
            "standby": [] if now is None else list(now.standby),
            "warmup": [] if now is None else list(now.warmup),
            "subtopologies": {
                subtopology: {
                    "epochs": totals.epochs,
                    "records": totals.records,
                    "rate": round(totals.rate(clock)),
                    "lag": lags[subtopology],
                    "dropped": totals.dropped,
                    "reasons": dict(totals.reasons),
                    "late": totals.late,
                    "last_epoch_ms": round(totals.last.took_ms),
                    "positions": totals.positions,
                }
                for subtopology, totals in self.subtopologies.items()
            },
        }
