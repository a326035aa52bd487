"""Joins by foreign key: three steps whose tasks run in any order, and in the end the table is what a batch gives."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kohort.spark.jobs.processors.foreign_key_join import AnswersProcessor, ResultsProcessor, SubscriptionsProcessor
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import LEFT, RIGHT, SIDE
from kohort.spark.program.table_operations import (
    COUNTER,
    FOREIGN,
    FOUND,
    GIVEN,
    NUMBER,
    SUBSCRIBERS,
    ForeignKeyAnswers,
    ForeignKeyResults,
    ForeignKeySubscriptions,
)

from .one_task import OneTask

PARTITIONS = 2
ORDER = [("id", pa.int64()), ("customer", pa.string()), ("item", pa.int64())]
ANSWER = [("name", pa.int64()), (FOUND, pa.bool_())]
OWN = [(NUMBER, pa.int64()), (SIDE, pa.int32()), (DELETED, pa.bool_())]


class Joined:
    """The three steps, each with its tasks and the partitions that they read."""

    def __init__(self, how: str) -> None:
        orders, subscribed = pa.schema([*ORDER, (DELETED, pa.bool_())]), pa.schema([*ORDER, *OWN])
        subscription = pa.schema([("customer", pa.string()), ("_key0", pa.int64()), *OWN, ANSWER[0]])
        answer = pa.schema([("id", pa.int64()), OWN[0], *ANSWER])
        settled = pa.schema([*ORDER, *OWN, *ANSWER])
        result = pa.schema([*ORDER, ANSWER[0], OWN[2]])
        bound = {FOREIGN: pa.schema([ORDER[1]]), COUNTER: pa.schema([OWN[0]])}
        key = pa.schema([("_key0", pa.int64())])
        known = {RIGHT: pa.schema([ANSWER[0]]), SUBSCRIBERS: (pa.schema([*key, OWN[0]]), key)}
        kept = {LEFT: pa.schema([*ORDER[1:], OWN[0], (GIVEN, pa.bool_())])}
        results = ForeignKeyResults(("id",), ("customer",), ("customer", "item"), ("name",), how)
        subscribing = ForeignKeySubscriptions(("id",), ("customer",))
        self.steps = [
            [
                OneTask(SubscriptionsProcessor(subscribing, subscribed), orders, ["id"], bound)
                for _ in range(PARTITIONS)
            ],
            [
                OneTask(AnswersProcessor(ForeignKeyAnswers(("customer",)), answer), subscription, ["customer"], known)
                for _ in range(PARTITIONS)
            ],
            [OneTask(ResultsProcessor(results, result), settled, ["id"], kept) for _ in range(PARTITIONS)],
        ]
        self.waiting: list[list[deque[dict[str, Any]]]] = [[deque() for _ in range(PARTITIONS)] for _ in self.steps]
        self.table: dict[int, tuple[Any, ...]] = {}

    def send(self, step: int, key: int | str, row: dict[str, Any]) -> None:
        number = ord(key) if isinstance(key, str) else key
        self.waiting[step][number % PARTITIONS].append(row)

    def run(self, step: int, partition: int, most: int) -> None:
        """An epoch of one task: of what waits for it, at most so much."""
        waiting = self.waiting[step][partition]
        rows = [waiting.popleft() for _ in range(min(most, len(waiting)))]
        for row in self.steps[step][partition].epoch(rows):
            match step:
                case 0 if row[SIDE] == 0:
                    self.send(2, row["id"], row)
                case 0:
                    own = {name: row[name] for name in ("customer", NUMBER, DELETED)}
                    self.send(1, row["customer"], {"_key0": row["id"], SIDE: 0, **own})
                case 1:
                    self.send(2, row["id"], {SIDE: 1, **row})
                case 2 if row[DELETED]:
                    del self.table[row["id"]]  # there is one
                case 2:
                    self.table[row["id"]] = row["customer"], row["item"], row["name"]

    def finish(self) -> None:
        for step in range(len(self.steps)):
            for partition in reversed(range(PARTITIONS)):
                self.run(step, partition, 1000)


@pytest.mark.parametrize("how", ["inner", "left"])
def test_the_table_is_right_in_the_end_however_tasks_interleave(how: str) -> None:
    for seed in range(20):
        follow(how, Random(seed))


def follow(how: str, random: Random) -> None:
    """Upserts of both sides, and between them epochs of any task, of a few rows each."""
    at_first = [("customer", None, name) for name in "xyz"]
    drawn: list[tuple[str, Any, Any]] = [
        random.choice(
            [
                ("order", random.randrange(2), random.choice(["x", "y", "z", None])),
                ("no order" if random.random() < 0.3 else "order", random.randrange(2), random.choice("xyz")),
                (random.choice(["customer", "no customer"]), None, random.choice("xyz")),
                *[("run", (random.randrange(3), random.randrange(PARTITIONS)), random.randint(1, 2))] * 6,
            ]
        )
        for _ in range(80)
    ]
    joined = Joined(how)
    orders: dict[int, tuple[str | None, int]] = {}
    names: dict[str, int] = {}
    for number, (what, one, other) in enumerate([*at_first, *drawn]):
        match what:
            case "order":
                orders[one] = other, number
                joined.send(0, one, {"id": one, "customer": other, "item": number, DELETED: False})
            case "no order":
                orders.pop(one, None)
                joined.send(0, one, {"id": one, DELETED: True})
            case "customer":
                names[other] = number
                joined.send(1, other, {"customer": other, "name": number, SIDE: 1, DELETED: False})
            case "no customer":
                names.pop(other, None)
                joined.send(1, other, {"customer": other, SIDE: 1, DELETED: True})
            case "run":
                joined.run(*one, other)
    joined.finish()
    expected = {
        key: (customer, item, names.get(customer or ""))
        for key, (customer, item) in orders.items()
        if how == "left" or customer in names
    }
    assert joined.table == expected
    bound = [sum(len(task.stores[name].rows) for task in joined.steps[step]) for step, name in
             ((0, FOREIGN), (1, SUBSCRIBERS), (1, RIGHT), (2, LEFT))]  # fmt: skip
    subscribed = sum(customer is not None for customer, _ in orders.values())
    assert bound == [subscribed, subscribed, len(names), len(orders)]


def test_answers_to_a_row_as_it_was_before_are_passed_over() -> None:
    joined = Joined("left")
    joined.send(1, "x", {"customer": "x", "name": 1, SIDE: 1, DELETED: False})
    joined.send(0, 0, {"id": 0, "customer": "x", "item": 10, DELETED: False})
    joined.finish()
    assert joined.table == {0: ("x", 10, 1)}
    joined.send(0, 0, {"id": 0, "customer": None, "item": 11, DELETED: False})
    joined.send(1, "x", {"customer": "x", "name": 2, SIDE: 1, DELETED: False})
    for step in (0, 1):  # that of "x" answers while the row is its subscriber still
        for partition in range(PARTITIONS):
            joined.run(step, partition, 1)
    joined.finish()
    assert joined.table == {0: (None, 11, None)}
