from kohort.client.types import TopicPartition as At
from kohort.spark.epoch import OffsetRange
from kohort.spark.monitoring.events import STREAM
from kohort.spark.runtime.epoch_planning import EpochPlan, PollRound, SubtopologyInputs, lag
from kohort.streams.tasks import TaskId

T0, T1 = TaskId("0", 0), TaskId("0", 1)
INPUTS = SubtopologyInputs("s", {"table": "t"})


def _ten(subtopology: str) -> int:
    return 10


def _moved(positions: dict[At, int], plan: EpochPlan) -> None:
    for each in plan.ranges:
        positions[At(each.topic, each.partition)] = each.end


def test_tables_come_first_and_to_their_end() -> None:
    ends = {At("t", 0): 25, At("t", 1): 3, At("s", 0): 100, At("s", 1): 0}
    positions = dict.fromkeys(ends, 0)
    this, seen = PollRound({"0": INPUTS}, ends), []
    while (plan := this.next(positions, [T0, T1], _ten)) is not None:
        seen.append((plan.input, plan.ranges))
        _moved(positions, plan)
    assert seen == [
        ("table", (OffsetRange("t", 0, 0, 7), OffsetRange("t", 1, 0, 3))),
        ("table", (OffsetRange("t", 0, 7, 17),)),
        ("table", (OffsetRange("t", 0, 17, 25),)),
        (STREAM, (OffsetRange("s", 0, 0, 10),)),
    ]
    assert lag(positions, ends) == 90


def test_a_table_that_grows_does_not_keep_the_stream_waiting() -> None:
    positions = {At("t", 0): 5, At("s", 0): 0}
    this = PollRound({"0": INPUTS}, {At("t", 0): 5, At("s", 0): 1})
    plan = this.next(positions, [T0], _ten)
    assert plan is not None and plan.input == STREAM
    _moved(positions, plan)
    assert this.next(positions, [T0], _ten) is None


def test_tasks_that_came_later_wait_for_the_next_round() -> None:
    this = PollRound({"0": SubtopologyInputs("s", {})}, {At("s", 0): 5})
    plan = this.next({At("s", 0): 0, At("s", 1): 0}, [T0, T1], _ten)
    assert plan is not None and plan.tasks == (T0,)


def test_each_gets_on_however_small_the_limit() -> None:
    this = PollRound({"0": SubtopologyInputs("s", {})}, {At("s", 0): 5, At("s", 1): 5})
    plan = this.next({At("s", 0): 0, At("s", 1): 0}, [T0, T1], lambda _: 1)
    assert plan is not None and [each.length for each in plan.ranges] == [1, 1]


def test_tables_alone() -> None:
    this = PollRound({"0": SubtopologyInputs(None, {"table": "t"})}, {At("t", 0): 0})
    assert this.next({At("t", 0): 0}, [T0], _ten) is None


def test_streams_are_read_in_order_unless_they_are_held() -> None:
    inputs = {"1": SubtopologyInputs("r", {}), "0": SubtopologyInputs("s", {})}
    ends, tasks = {At("r", 0): 5, At("s", 0): 7}, [T0, TaskId("1", 0)]
    for held, expected in (("none", ["r", "s"]), ("0", ["r"]), ("1", ["s"])):
        positions = dict.fromkeys(ends, 0)
        this, seen = PollRound(inputs, ends), []
        while (
            plan := this.next(positions, tasks, _ten, held=lambda plan, held=held: plan.subtopology == held)
        ) is not None:
            seen.append(plan.ranges[0].topic)
            _moved(positions, plan)
        assert seen == expected


def test_a_batch_that_was_begun_is_the_same_again_whatever_the_limit() -> None:
    ends = {At("s", 0): 90, At("s", 1): 90}
    positions = {At("s", 0): 10, At("s", 1): 10}
    this = PollRound({"0": SubtopologyInputs("s", {})}, ends)
    plan = this.next(positions, [T0, T1], _ten, until={At("s", 0): 60})
    assert plan is not None
    assert {each.partition: (each.start, each.end) for each in plan.ranges} == {0: (10, 60), 1: (10, 20)}
    assert set(plan.tasks) == {T0, T1}


def test_a_batch_whose_end_is_not_seen_yet_waits() -> None:
    this = PollRound({"0": SubtopologyInputs("s", {})}, {At("s", 0): 50})
    assert this.next({At("s", 0): 10}, [T0], _ten, until={At("s", 0): 60}) is None


def test_tasks_whose_timers_are_due_are_in_an_epoch_without_records() -> None:
    ends = {At("t", 0): 0, At("s", 0): 5, At("s", 1): 7}
    this = PollRound({"0": INPUTS}, ends, {T0, T1})
    plan = this.next({At("t", 0): 0, At("s", 0): 5, At("s", 1): 6}, [T0, T1], _ten)
    assert plan is not None and plan.input == STREAM
    assert set(plan.ranges) == {OffsetRange("s", 0, 5, 5), OffsetRange("s", 1, 6, 7)}


def test_a_task_whose_timers_are_due_is_called_once_in_a_round_however_many_topics_it_reads() -> None:
    inputs = SubtopologyInputs("a", {}, ("b", "c"))
    positions = {At("a", 0): 5, At("b", 0): 0, At("c", 0): 7}
    this = PollRound({"0": inputs}, {At("a", 0): 5, At("b", 0): 1, At("c", 0): 7}, {T0})
    plans = []
    while (plan := this.next(positions, [T0], _ten)) is not None:
        plans.append(plan.ranges)
        _moved(positions, plan)
    assert plans == [(OffsetRange("a", 0, 5, 5),), (OffsetRange("b", 0, 0, 1),)]


def test_a_batch_that_was_begun_is_ended_before_timers_are_called() -> None:
    this = PollRound({"0": SubtopologyInputs("s", {})}, {At("s", 0): 5}, {T0})
    assert this.next({At("s", 0): 5}, [T0], _ten, until={At("s", 0): 9}) is None


def test_each_topic_of_a_stream_has_an_epoch_in_a_round() -> None:
    inputs = SubtopologyInputs("a", {"table": "t"}, ("b",))
    ends = {At("t", 0): 1, At("a", 0): 30, At("b", 0): 5, At("b", 1): 5}
    positions = dict.fromkeys(ends, 0)
    this, seen = PollRound({"0": inputs}, ends), []
    while (plan := this.next(positions, [T0, T1], _ten)) is not None:
        seen.append((plan.input, plan.ranges))
        _moved(positions, plan)
    assert seen == [
        ("table", (OffsetRange("t", 0, 0, 1),)),
        (STREAM, (OffsetRange("a", 0, 0, 10),)),
        (STREAM, (OffsetRange("b", 0, 0, 5), OffsetRange("b", 1, 0, 5))),
    ]


def test_both_sides_of_a_join_are_read_in_one_epoch_and_by_what_waits_of_each() -> None:
    inputs = SubtopologyInputs("a", {}, ("b",), together=True)
    ends = {At("a", 0): 40, At("b", 0): 400, At("a", 1): 0, At("b", 1): 3}
    positions = dict.fromkeys(ends, 0)
    this = PollRound({"0": inputs}, ends)
    plan = this.next(positions, [T0, T1], lambda _: 113)
    assert plan is not None and plan.tasks == (T0, T1)
    assert plan.ranges == (
        OffsetRange("a", 0, 0, 10),
        OffsetRange("b", 0, 0, 100),
        OffsetRange("a", 1, 0, 0),
        OffsetRange("b", 1, 0, 3),
    )
    assert [plan.task_of(each) for each in plan.ranges] == [T0, T0, T1, T1]
    assert this.next(positions, [T0, T1], _ten) is None, "that is the round"


def test_a_side_with_a_single_record_gets_on_beside_a_long_one() -> None:
    inputs = SubtopologyInputs("a", {}, ("b",), together=True)
    plan = PollRound({"0": inputs}, {At("a", 0): 1_000_000, At("b", 0): 1}).next(
        {At("a", 0): 0, At("b", 0): 0}, [T0], _ten
    )
    assert plan is not None and {each.topic: each.length for each in plan.ranges} == {"a": 9, "b": 1}


def test_of_a_batch_of_both_sides_that_was_begun_one_may_have_no_end() -> None:
    """It was committed before that side was read together with the other."""
    inputs = SubtopologyInputs("a", {}, ("b",), together=True)
    ends = {At("a", 0): 40, At("b", 0): 40}
    plan = PollRound({"0": inputs}, ends).next({At("a", 0): 5, At("b", 0): 7}, [T0], _ten, until={At("a", 0): 9})
    assert plan is not None and plan.ranges == (OffsetRange("a", 0, 5, 9), OffsetRange("b", 0, 7, 7))
