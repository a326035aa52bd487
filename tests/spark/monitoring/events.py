"""Events of an instance, with defaults for what a test doesn't set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kohort.spark.monitoring.events import EpochDone, Restoring, TasksNow


def epoch(
    at: float, tasks: Sequence[str] = ("0_0",), records: int = 100, took_ms: float = 500.0, **more: Any
) -> EpochDone:
    fields: dict[str, Any] = {
        "subtopology": tasks[0].rpartition("_")[0] if tasks else "globals",
        "number": 1, "input": "stream", "bytes": 10 * records, "out_records": 5,
        "dropped": 0, "late": 0, "lag": 0, "job_ms": 300.0, "commit_ms": 50.0,
    }  # fmt: skip
    return EpochDone(at=at, tasks=tasks, records=records, took_ms=took_ms, **{**fields, **more})


def tasks(at: float, active: Sequence[str] = (), standby: Sequence[str] = (), **more: Any) -> TasksNow:
    return TasksNow(at=at, active=active, standby=standby, warmup=more.pop("warmup", ()), **more)


def restoring(at: float, position: int, end: int, task: str = "1_0", store: str = "delays") -> Restoring:
    return Restoring(at, task, store, position, end, end - position, done=position >= end)
