"""A queue's workers in virtual time, with the broker's own share partition; and breakages that are noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from kohort.spark.queues import epoch
from kohort.spark.queues.worker import QueueWorker
from tests.marks import long
from tests.simulation.books import InvariantError
from tests.simulation.queues.scenario import simulate

CHUNK = 5
SEEDS = [1, 6, *long(*range(11, 21, CHUNK), *range(101, 201, CHUNK))]
NOTICED_WITHIN = 5
"""Seeds."""


def test_the_same_seed_is_the_same_run() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize("first", SEEDS)
def test_each_job_comes_to_its_end(first: int) -> None:
    total = sum((simulate(seed) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["seeds"] == CHUNK and total["jobs"] > 200 * CHUNK
    assert min(total["kill"], total["pause"], total["stop"], total["restart"], total["expired"], total["refused"]) > 0


async def _nothing(*_: Any) -> None:
    """Writes nothing, and is content."""


def results_forgotten() -> Any:
    """Jobs are acknowledged whose results aren't written."""
    return patch.object(QueueWorker, "_write", _nothing)


def letters_forgotten() -> Any:
    """Jobs are rejected without a dead letter."""
    return patch.object(QueueWorker, "_write_letters", _nothing)


def released_for_ever() -> Any:
    """Jobs are released at their last delivery, too, until the broker drops them."""
    settle = epoch.settle

    def without_end(records: Any, results: Any, rules: Any, *more: Any) -> Any:
        return settle(records, results, replace(rules, max_deliveries=1_000), *more)

    return patch.object(epoch, "settle", without_end)


def problems_passed_over() -> Any:
    """What can't be written is taken for written."""

    async def none(self: QueueWorker, writing: Any) -> None:
        try:
            await writing
        except OSError:
            return

    return patch.object(QueueWorker, "_problem_of", none)


@pytest.mark.parametrize("breakage", [results_forgotten, letters_forgotten, released_for_ever, problems_passed_over])
def test_a_breakage_is_noticed(breakage: Any) -> None:
    with breakage(), pytest.raises(InvariantError):
        for seed in range(1, 1 + NOTICED_WITHIN):
            simulate(seed)
