from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

from kohort.coordinator.placement.fair_shares import apportion


def test_no_apportionment_spreads_less_and_all_that_spread_as_little_are_in_the_window() -> None:
    random = Random(1)
    for _ in range(200):
        sizes = [random.randint(1, 4) for _ in range(random.randint(1, 4))]
        units = random.randint(0, 7)
        spread, low, high = apportion(units, sizes)
        spreads = {}
        for shared in product(range(units + 1), repeat=len(sizes)):
            if sum(shared) == units:
                far = [each - Fraction(units * size, sum(sizes)) for each, size in zip(shared, sizes, strict=True)]
                spreads[shared] = (max(far) - min(far)) * sum(sizes)
        assert spread == min(spreads.values())
        inside = {
            shared
            for shared in spreads
            if all(least <= each <= most for least, each, most in zip(low, shared, high, strict=True))
        }
        assert inside == {shared for shared, each in spreads.items() if each == spread}
