from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.bound import Bound


def test_the_oldest_go_first_and_the_newest_stays() -> None:
    bound: Bound[str] = Bound(10)
    assert bound.put("a", 4) == bound.put("b", 4) == []
    assert bound.put("c", 4) == ["a"]
    assert bound.resize("b", 5) == []
    assert bound.put("b", 6) == []  # the newest now
    assert bound.put("d", 1) == ["c"]
    assert bound.put("e", 100) == ["b", "d"]
    assert (bound.total, len(bound)) == (100, 1)
    bound.remove("e")
    bound.remove("e")
    assert (bound.total, len(bound)) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from(["put", "resize", "remove"]), st.integers(0, 5), st.integers(0, 9))))
def test_the_sum_holds(changes: list[tuple[str, int, int]]) -> None:
    bound: Bound[int] = Bound(12)
    sizes: dict[int, int] = {}
    for change, key, size in changes:
        if change == "remove":
            bound.remove(key)
            sizes.pop(key, None)
            continue
        gone = bound.put(key, size) if change == "put" else bound.resize(key, size)
        sizes[key] = size
        assert key not in gone
        for each in gone:
            del sizes[each]
        assert bound.total == sum(sizes.values())
        assert bound.total <= 12 or len(bound) == 1
