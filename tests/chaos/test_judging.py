"""What `make scale` judges by, on journals that are made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kohort.spark.monitoring.journal_analysis import Entry, JournalAnalysis
from tests.chaos.judging import (
    GAP_LIMIT,
    IDLE_LIMIT,
    Gap,
    Step,
    all_work,
    left_out,
    longest_gaps,
    moved_tasks,
    warm_ups,
)
from tests.spark.monitoring.events import epoch, tasks

BOTH = ("0_0", "0_1")


def journals(**events: Sequence[Any]) -> JournalAnalysis:
    """By instance."""
    found = []
    for instance, told in events.items():
        for each in told:
            fields = msgspec.to_builtins(each)
            event = "epoch" if "took_ms" in fields else "tasks"
            found.append(Entry(fields.pop("at"), instance, event, fields))
    return JournalAnalysis(found)


def test_gaps() -> None:
    """0_0 has an epoch each second; 0_1 had its last at 3.0 when an instance came, and none from 6.5 on."""
    told = journals(
        one=[
            *(epoch(at, ["0_0"]) for at in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)),
            *(epoch(at, ["0_1"], took_ms=1_500) for at in (1.0, 3.0, 6.5)),
        ]
    )
    assert longest_gaps(told, BOTH, since=4.0, until=8.0) == {"0_0": Gap(1.0, 0.5), "0_1": Gap(3.5, 2.0)}
    assert longest_gaps(told, BOTH, since=4.0, until=20.0) == {"0_0": Gap(12.0, 12.0), "0_1": Gap(13.5, 13.5)}
    assert longest_gaps(told, ["0_1"], since=3.5, until=4.0) == {"0_1": Gap(1.0, 1.0)}
    assert longest_gaps(told, ["0_1"], since=3.5, until=5.5) == {"0_1": Gap(2.5, 2.0)}  # it ends in an epoch
    assert longest_gaps(told, ["1_0"], since=4.0, until=8.0) == {"1_0": Gap(4.0, 4.0)}  # of which nobody ever told


def test_an_instance_that_runs_no_epoch_at_all() -> None:
    """No epoch leaves a task out, and still its tasks stand still."""
    told = journals(one=[epoch(at, BOTH) for at in (1.0, 2.0, 3.0, 33.0, 34.0)])
    assert left_out(told, BOTH, 2.0, 34.0) == 0
    step = Step.of(told, since=2.0, until=34.0)
    assert step.longest(moved=False) == Gap(30.0, 29.5)
    assert sorted(fault.partition(",")[0] for fault in step.faults()) == ["0_0 stayed"] * 2 + ["0_1 stayed"] * 2


def test_an_epoch_that_takes_long_is_no_stop() -> None:
    """Unless it takes as long as none should."""
    slow = IDLE_LIMIT + 1
    told = journals(one=[epoch(1.0, BOTH), epoch(1.5 + slow, BOTH, took_ms=1_000 * slow)])
    assert Step.of(told, since=0.5, until=1.5 + slow).faults() == []
    slow = GAP_LIMIT + 1
    told = journals(one=[epoch(1.0, BOTH), epoch(1.5 + slow, BOTH, took_ms=1_000 * slow)])
    assert len(Step.of(told, since=0.5, until=1.5 + slow).faults()) == 2


def test_a_task_that_is_left_out() -> None:
    told = journals(one=[epoch(at, BOTH if at < 2 else ["0_0"]) for at in (1.0, 2.0, 3.0, 4.0)])
    step = Step.of(told, since=0.5, until=4.5)
    assert step.skipped == 2
    assert "epochs left out tasks that stayed, 2 times" in step.faults()


def test_warm_ups() -> None:
    """0_1 moves when its copy is warm, 0_2 moves cold, 0_3 is warmed up for nothing."""
    told = journals(
        one=[
            tasks(0.5, ["0_0", "0_1", "0_2"]),
            epoch(1.0, ["0_0", "0_1", "0_2"]),
            *(epoch(at, ["0_0"]) for at in (2.0, 3.0, 4.0)),
        ],
        two=[
            tasks(1.5, warmup=["0_1", "0_3"]),
            tasks(2.0, ["0_2"], warmup=["0_1", "0_3"]),
            epoch(2.5, ["0_2"]),
            tasks(3.0, ["0_1", "0_2"]),
            epoch(3.5, ["0_1", "0_2"]),
        ],
    )
    assert warm_ups(told, since=1.0, until=4.0) == {"0_1": 1.5}
    assert warm_ups(told, since=1.0, until=2.5) == {}
    step = Step.of(told, since=1.0, until=4.0)
    assert step.moved == {"0_1", "0_2"}
    assert step.cold() == ["0_2"]
    assert step.faults() == []
    assert step.longest(moved=True) == Gap(2.5, 2.0)


def test_a_task_that_is_not_seen_at_its_new_place_yet() -> None:
    """It moved all the same, and isn't one that stayed and is left out."""
    told = journals(
        one=[
            tasks(0.5, BOTH),
            *(epoch(at, BOTH if at < 2 else ["0_0"]) for at in (1.0, 2.0, 3.0, 4.0)),
            tasks(1.5, ["0_0"]),
        ],
        two=[tasks(2.0, ["0_1"]), epoch(9.0, ["0_1"])],
    )
    step = Step.of(told, since=0.7, until=4.5)
    assert step.moved == {"0_1"}
    assert (step.skipped, step.faults()) == (0, [])
    assert step.longest(moved=True).seconds == 3.5
    assert moved_tasks(told, since=2.5, until=9.0) == set()
    assert all_work(told)
    assert not all_work(journals(one=[tasks(0.5, BOTH), epoch(1.0, BOTH), tasks(1.5)], two=[tasks(2.0, BOTH)]))


def test_nothing_stayed() -> None:
    told = journals(one=[tasks(0.5, ["0_0"]), epoch(1.0, ["0_0"])], two=[tasks(1.5, ["0_0"]), epoch(2.0, ["0_0"])])
    assert Step.of(told, since=0.7, until=2.0).faults() == ["no task stayed"]
