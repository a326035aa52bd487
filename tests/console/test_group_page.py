"""Names of members beside partitions."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from kohort.short_names import short_names


@given(st.lists(st.text("ab", max_size=20) | st.text("a", min_size=10, max_size=40), max_size=6))
def test_short_names_are_as_short_as_tells_them_apart(ids: list[str]) -> None:
    names = short_names(ids)
    assert names.keys() == set(ids)
    assert len(set(names.values())) == len(names)
    length = next(length for length in range(12, 50) if len({each[:length] for each in ids}) == len({*ids}))
    assert names == {each: each if len(each) <= length + 1 else f"{each[:length]}…" for each in ids}


def test_ids_of_clients_with_very_long_names_are_quick() -> None:
    began = time.process_time()
    assert len(short_names(f"{'a' * 30_000}{number:03}" for number in range(100))) == 100
    assert time.process_time() - began < 2
