"""What an instance does now, gathered from what it tells its listeners."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kohort.spark.monitoring.events import BaseListener, EpochDone, Restoring, TasksNow
from kohort.spark.monitoring.lag import RecordsLag

__all__ = ["Overview", "PartSoFar"]

_RATE_OVER: Final = 10.0  # seconds
_FAILING_FOR: Final = 30.0  # seconds


@dataclass
class PartSoFar:
    """What a part has done since the start.

    Attributes:
        epochs, records, bytes, out_records, dropped, late: sums; `reasons`: of what was dropped why.
        lag: records that are left to read, tables' too, as of its last epoch.
        positions: where its tasks read on, by "topic-partition".
        last: its last epoch.
    """

    last: EpochDone
    epochs: int = 0
    records: int = 0
    bytes: int = 0
    out_records: int = 0
    dropped: int = 0
    late: int = 0
    lag: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    _recent: deque[tuple[float, float, int]] = field(default_factory=deque)

    def add(self, done: EpochDone) -> None:
        """Take an epoch in."""
        self.last = done
        self.epochs += 1
        self.records += done.records
        self.bytes += done.bytes
        self.out_records += done.out_records
        self.dropped += done.dropped
        self.reasons.update(done.reasons)
        self.late += done.late
        self.lag = done.lag
        self.positions.update(done.positions)
        self._recent.append((done.at, done.took_ms / 1000, done.records))

    def rate(self, now: float) -> float:
        """Records a second, over the last ten seconds or since the first epoch in them began."""
        while self._recent and self._recent[0][0] < now - _RATE_OVER:
            self._recent.popleft()
        if not self._recent:
            return 0.0
        at, took, _ = self._recent[0]
        return sum(records for _, _, records in self._recent) / max(now - at + took, 0.001)


class Overview(BaseListener):
    """Keeps what is going on: for the pages /tasks and /health, and for the live line.

    Args:
        clock: seconds since 1970.
        measured_lags: returns the lags of subtopologies as they are now; by default they are as of the last epochs.

    Attributes:
        now: the tasks; None before there are any.
        parts: by id, in the order in which they began.
        restores: of stores that aren't done, by (task, store).
        reason: why nothing goes on; None if it does.
        failure: what went wrong last, and when; None when it has gone on since.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, measured_lags: Callable[[], Mapping[str, RecordsLag]] = dict
    ) -> None:
        self.clock = clock
        self._measured_lags = measured_lags
        self.now: TasksNow | None = None
        self.parts: dict[str, PartSoFar] = {}
        self.restores: dict[tuple[str, str], Restoring] = {}
        self.reason: str | None = None
        self.failure: tuple[float, str] | None = None

    def epoch(self, done: EpochDone) -> None:
        """An epoch is committed."""
        if done.part not in self.parts:
            self.parts[done.part] = PartSoFar(done)
        self.parts[done.part].add(done)
        self.failure = None

    def tasks(self, now: TasksNow) -> None:
        """The tasks have changed."""
        self.now = now
        running = {task.rpartition("_")[0] for task in now.active}
        for part_id, part in self.parts.items():
            if part.last.tasks and part_id not in running:  # what is left to read is another instance's now
                part.lag = 0
                part.positions.clear()
        kept = {*now.restoring, "global"}
        self.restores = {key: restore for key, restore in self.restores.items() if key[0] in kept}

    def restoring(self, progress: Restoring) -> None:
        """A store is being restored."""
        key = (progress.task, progress.store)
        if progress.done:
            self.restores.pop(key, None)
        else:
            self.restores[key] = progress

    def waiting(self, reason: str | None) -> None:
        """Why nothing goes on."""
        self.reason = reason

    def failed(self, text: str) -> None:
        """Something went wrong."""
        self.failure = (self.clock(), text)

    # Sums ------------------------------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        """Records read since the start."""
        return sum(part.records for part in list(self.parts.values()))

    @property
    def lag(self) -> int:
        """Records that are left to read."""
        return sum(self.lags().values())

    def lags(self) -> dict[str, int]:
        """The same by subtopology: as measured now, else as of its last epoch."""
        last = {part_id: part.lag for part_id, part in list(self.parts.items())}
        return last | {part_id: lag.records for part_id, lag in self._measured_lags().items()}

    def lag_ages(self) -> dict[str, float]:
        """Seconds since the lag of each subtopology was measured; those whose lag isn't measured are left out."""
        now = self.clock()
        return {part_id: max(0.0, now - lag.at) for part_id, lag in self._measured_lags().items()}

    def rate(self) -> float:
        """Records a second, lately."""
        now = self.clock()
        return sum(part.rate(now) for part in list(self.parts.values()))

    def state(self) -> str:
        """In one word: starting, running, restoring, waiting, stopped (a part stands still) or failing."""
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

    # Pages -----------------------------------------------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        """What /health says."""
        return {
            "status": self.state(),
            "reason": self.reason,
            "failure": None if self.failure is None else self.failure[1],
            "stopped": {} if self.now is None else dict(self.now.stopped),
            "records": self.records,
            "lag": self.lag,
            "lag_age_s": round(max(self.lag_ages().values(), default=0.0), 1),
        }

    def shown(self) -> dict[str, Any]:
        """What /tasks says."""
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
                part_id: {
                    "epochs": part.epochs,
                    "records": part.records,
                    "rate": round(part.rate(clock)),
                    "lag": lags[part_id],
                    "dropped": part.dropped,
                    "reasons": dict(part.reasons),
                    "late": part.late,
                    "last_epoch_ms": round(part.last.took_ms),
                    "positions": part.positions,
                }
                for part_id, part in self.parts.items()
            },
        }
