"""The steps of planned moves, on journals that are made up."""

from __future__ import annotations

from tests.chaos.moves import Move, planned_moves
from tests.chaos.test_judging import journals
from tests.spark.monitoring.events import epoch, tasks

OWNER = [
    tasks(1.0, ["0_0", "0_1"]),
    epoch(9.0, ["0_0", "0_1"]),
    tasks(10.125, ["0_1"], closing=["0_0"]),
    epoch(10.25, ["0_0", "0_1"]),
    tasks(10.5, ["0_1"]),
]


def test_a_move_to_a_warm_up_step_by_step() -> None:
    told = journals(
        one=OWNER,
        two=[
            tasks(2.0, warmup=["0_0"]),
            tasks(10.75, ["0_0"], restoring=["0_0"]),
            tasks(11.0, ["0_0"]),
            epoch(12.0, ["0_0"], took_ms=500),
            epoch(13.0, ["0_0"]),
        ],
    )
    assert planned_moves(told, [5.0, 10.0, 10.6], since=9.0, until=20.0) == [
        Move("0_0", decided=10.0, told=10.125, released=10.5, given=10.75, restored=11.0, began=11.5, committed=12.0)
    ]
    assert planned_moves(told, [5.0, 10.0, 10.6], since=10.5, until=20.0) == []


def test_only_moves_to_copies_that_had_an_epoch_there_count() -> None:
    cold = [tasks(10.75, ["0_0"], restoring=["0_0"]), tasks(11.0, ["0_0"]), epoch(12.0, ["0_0"])]
    assert planned_moves(journals(one=OWNER, two=cold), [10.0], 0, 20) == []
    moved_on = [tasks(2.0, warmup=["0_0"]), tasks(10.75, ["0_0"], restoring=["0_0"]), tasks(11.0)]
    assert planned_moves(journals(one=OWNER, two=moved_on), [10.0], 0, 20) == []
    idle = [tasks(2.0, warmup=["0_0"]), tasks(10.75, ["0_0"])]
    assert planned_moves(journals(one=OWNER, two=idle), [10.0], 0, 20) == []
    dead = [tasks(2.0, standby=["0_0"]), tasks(10.75, ["0_0"]), epoch(12.0, ["0_0"])]
    assert planned_moves(journals(one=OWNER[:1], two=dead), [10.0], 0, 20) == []
