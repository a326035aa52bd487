"""Which tasks the clock calls."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from kohort.spark.jobs.processors.states import at_time
from kohort.spark.runtime.clock_timers import due_timers
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.subtopology_plan import SubtopologyPlan
from kohort.spark.state import StateDirectory, Store
from kohort.streams.tasks import TaskId

PLANS = {
    "0": SubtopologyPlan("0", SubtopologyInputs("s", {}), clocks=("mine", "other")),
    "1": SubtopologyPlan("1", SubtopologyInputs("r", {})),
}


def test_tasks_with_a_timer_whose_time_has_come(tmp_path: Path) -> None:
    tasks = [TaskId("0", 0), TaskId("0", 1), TaskId("0", 2), TaskId("1", 0)]
    with StateDirectory(tmp_path, "app") as directory:
        stores: dict[TaskId, dict[str, Store]] = {
            task: {name: directory.open_store(task, name) for name in ("mine", "other")} for task in tasks[:2]
        }
        keys = at_time(pa.array(['{"k":"a"}', '{"k":"b"}']), pa.array([1_000, 5_000])).cast(pa.binary())
        stores[tasks[1]]["other"].write(keys, pa.array([b"{}", b"{}"]), 2)

        def due(now: int) -> list[TaskId]:
            found = due_timers(PLANS, tasks, lambda task: stores.get(task, {}), now)
            assert found.now == now
            return list(found.tasks)

        assert [due(999), due(1_000), due(6_000)] == [[], [tasks[1]], [tasks[1]]]
        for each in stores.values():
            for store in each.values():
                store.close()
