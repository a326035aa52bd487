"""Which records make a job fail."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.queues.halving import MOST_FAILURES, Halved, halved


def work(rows: int, poisonous: set[int], *, hopeless: bool = False) -> tuple[Halved[range], int]:
    jobs = 0

    async def run(start: int, end: int) -> range:
        nonlocal jobs
        jobs += 1
        if poisonous & set(range(start, end)):
            raise ValueError("torn")
        return range(start, end)

    made = asyncio.run(halved(rows, run, lambda error: None if hopeless else str(error)))
    return made, jobs


@given(st.integers(0, 2_000), st.lists(st.integers(0, 1_999), max_size=2))
def test_just_the_records_fail_that_make_a_job_fail(rows: int, some: list[int]) -> None:
    poisonous = {each for each in some if each < rows}
    made, _ = work(rows, poisonous)
    assert made.failed == dict.fromkeys(sorted(poisonous), "torn")
    done = [row for each in made.results for row in each]
    assert done == [row for row in range(rows) if row not in poisonous]
    assert not made.given_up


def test_what_fails_altogether_is_given_up() -> None:
    made, jobs = work(1_000, set(range(1_000)))
    assert (made.given_up, len(made.failed), jobs) == (True, 1_000, MOST_FAILURES)


def test_where_trying_again_cannot_help_there_is_one_job() -> None:
    made, jobs = work(1_000, {3}, hopeless=True)
    assert (made.given_up, len(made.failed), jobs) == (True, 1_000, 1)
