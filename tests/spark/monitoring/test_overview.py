from __future__ import annotations

import pytest

from kohort.spark.monitoring.lag import RecordsLag
from kohort.spark.monitoring.metrics import Metrics
from kohort.spark.monitoring.overview import Overview
from tests.spark.monitoring.events import epoch, restoring, tasks


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_states() -> None:
    clock = Clock()
    overview = Overview(clock)
    assert overview.state() == "starting"
    overview.waiting("no broker answers")
    assert overview.state() == "waiting"
    overview.waiting(None)
    overview.tasks(tasks(0.0, ["0_0", "1_0"], restoring=["0_0", "1_0"]))
    assert overview.state() == "restoring"
    overview.tasks(tasks(0.0, ["0_0", "1_0"], restoring=["1_0"]))
    assert overview.state() == "running"
    overview.tasks(tasks(0.0, ["0_0"], stopped={"1": "bad record"}))
    assert overview.state() == "stopped"
    overview.tasks(tasks(0.0, ["0_0"]))
    overview.failed("a Spark job failed")
    assert (overview.state(), overview.health_page()["failure"]) == ("failing", "a Spark job failed")
    overview.epoch(epoch(0.0))
    assert overview.state() == "running"
    overview.failed("again")
    clock.now = 31.0
    assert overview.state() == "running"


def test_it_is_ready_once_all_its_tasks_run() -> None:
    overview = Overview()
    assert overview.why_unready() == "starting"
    overview.tasks(tasks(0.0, ["0_0", "1_0"], restoring=["1_0"]))
    assert (overview.state(), overview.why_unready()) == ("running", "restoring")
    overview.tasks(tasks(0.0, [], ["0_0"]))
    assert overview.why_unready() is None
    overview.restoring(restoring(0.0, 1, 2, task="global"))
    assert overview.why_unready() == "restoring"
    overview.restoring(restoring(0.0, 2, 2, task="global"))
    overview.waiting("no broker answers")
    assert overview.why_unready() == "waiting"


def test_rate_lag_and_restores() -> None:
    clock = Clock()
    overview = Overview(clock)
    for at in range(1, 21):
        clock.now = at
        overview.epoch(epoch(at, records=1_000, took_ms=1_000, lag=70, positions={"flights-0": at}))
    overview.epoch(epoch(20, records=0, input="airlines", lag=3))
    assert overview.rate() == pytest.approx(1_000)
    assert (overview.records, overview.lag) == (20_000, 3)
    clock.now = 31.0
    assert overview.rate() == 0
    overview.tasks(tasks(0.0, ["0_0", "1_0"], restoring=["1_0"]))
    overview.restoring(restoring(0.0, 5, 10))
    overview.restoring(restoring(0.0, 5, 10, "global", "planes"))
    shown = overview.tasks_page()
    assert [restore["task"] for restore in shown["restoring"]] == ["1_0", "global"]
    assert shown["subtopologies"]["0"] | {"rate": 0} == {
        "epochs": 21, "records": 20_000, "rate": 0, "lag": 3, "dropped": 0, "reasons": {}, "late": 0,
        "last_epoch_ms": 500, "positions": {"flights-0": 20},
    }  # fmt: skip
    overview.restoring(restoring(0.0, 10, 10, "global", "planes"))
    overview.tasks(tasks(0.0, ["1_0"]))  # 1_0 went and came back, and 0 is another's now
    assert overview.restores == {}
    assert overview.lag == 0


def test_the_lag_is_that_of_now_where_it_is_known() -> None:
    clock = Clock()
    overview = Overview(clock, lambda: {"0": RecordsLag(90, 95.0), "1": RecordsLag(5, 99.0)})
    metrics = Metrics("app", overview)
    overview.epoch(epoch(1.0, lag=3))
    overview.epoch(epoch(1.0, [], lag=2))
    overview.tasks(tasks(2.0, ["0_0"]))
    clock.now = 100.0
    assert overview.lags() == {"0": 90, "globals": 2, "1": 5}  # of 1 the first epoch isn't done yet
    assert (overview.health_page()["lag"], overview.health_page()["lag_age_s"]) == (97, 5.0)
    assert overview.tasks_page()["subtopologies"]["0"]["lag"] == 90
    text = metrics.text().decode()
    assert 'kafka_streams_records_lag{subtopology="1"} 5.0' in text
    assert 'kafka_streams_records_lag_age_seconds{subtopology="0"} 5.0' in text
