"""Share partitions in virtual time, with everything going wrong around them. See `make simulate`."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation.share_partitions.scenario import simulate

CHUNK = 10


def test_the_same_seed_is_the_same_run() -> None:
    assert simulate(7) == simulate(7)


@pytest.mark.parametrize("first", range(1, 60, CHUNK))
def test_each_record_has_one_holder_and_comes_to_an_end(first: int) -> None:
    total = sum((simulate(seed) for seed in range(first, first + CHUNK)), Counter[str]())
    assert total["seeds"] == CHUNK
    assert total["acquired"] > 500 * CHUNK
    assert total["expired"] > CHUNK
    assert min(total["failed"], total["refused"], total["restarts"], total["left"], total["compared"]) > 0


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 1_300, 100))
def test_many_more(first: int) -> None:
    assert sum((simulate(seed) for seed in range(first, first + 100)), Counter[str]())["seeds"] == 100
