"""What becomes of each store when a changed program goes on."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.program.committed_metadata import Committed, Fingerprint
from kohort.spark.program.store_formats import ROWS, StoreFormat, StoreFormats, as_plain, carried, parsed
from kohort.spark.program.upgrade_rules import Fate, StoreChange, StoresNow, compared, read_again, store_changes

OLD, NEW = Fingerprint("old"), Fingerprint("new")
DELAYS = StoreFormat("k", {"n": "1", "mean": "2"})


@pytest.mark.parametrize(
    ("now", "fate", "why"),
    [
        (DELAYS, Fate.KEPT, ""),
        (StoreFormat("k", {"mean": "2", "n": "1"}), Fate.KEPT, ""),
        (StoreFormat("k", {"n": "1"}), Fate.KEPT, "without mean"),
        (StoreFormat("k", {"n": "1", "mean": "2", "p90": "3"}), Fate.EXTENDED, "p90: nothing yet, of rows from now on"),
        (StoreFormat("k", {"n": "1", "p": "3"}), Fate.EXTENDED, "p: nothing yet, of rows from now on; without mean"),
        (StoreFormat("k", {"n": "1", "mean": "9"}), Fate.REFUSED, "mean means something else, or is of another type"),
        (StoreFormat("k", {"n": "8", "mean": "9"}), Fate.REFUSED, "n, mean mean something else, or are of other types"),
        (StoreFormat("z", DELAYS.columns), Fate.REFUSED, "its groups, its window or what it is for are others"),
    ],
)
def test_a_store_that_both_programs_have(now: StoreFormat, fate: Fate, why: str) -> None:
    assert compared(DELAYS, now) == (fate, why)


def test_another_expression_is_told_of_whatever_else_changes() -> None:
    before = StoreFormat("k", {"n": "1:a", "mean": "2"})
    one = "n has another expression than the state was made with, which is used all the same"
    assert compared(before, StoreFormat("k", {"n": "1:b", "mean": "2"})) == (Fate.KEPT, one)
    more = compared(before, StoreFormat("k", {"n": "1:b", "mean": "2", "p": "3"}))
    assert more == (Fate.EXTENDED, f"p: nothing yet, of rows from now on; {one}")
    assert compared(DELAYS, StoreFormat("k", {"n": "1:b", "mean": "2"})) == (Fate.KEPT, ""), "it wasn't noted"
    assert compared(before, StoreFormat("k", {"n": "2:a"})).fate is Fate.REFUSED


def test_a_table_with_more_columns_is_read_again() -> None:
    more = StoreFormat("k", {**DELAYS.columns, "city": "3"})
    assert compared(DELAYS, more, table=True) == (Fate.REBUILT, "for city its topic is read again")
    before = {"airlines": DELAYS}
    assert read_again(before, {"airlines": more}, {"airlines"})
    assert read_again({}, before, {"airlines"}), "it is new"
    assert not read_again(before, before, {"airlines"})
    assert not read_again(before, {"airlines": more}, ()), "an aggregate isn't"
    assert not read_again(None, before, {"airlines"}), "nothing is said"


def test_a_column_that_was_dropped_comes_back_as_the_same_or_not_at_all() -> None:
    without = carried({"d": DELAYS}, {"d": StoreFormat("k", {"n": "1"})})["d"]
    assert without.dropped == {"mean": "2"}
    assert compared(without, DELAYS).fate is Fate.EXTENDED
    assert compared(without, StoreFormat("k", {"n": "1", "mean": "9"})).fate is Fate.REFUSED
    assert carried({"d": without}, {"d": DELAYS})["d"] == DELAYS


def test_a_store_that_was_left_stands_where_it_stood() -> None:
    committed = carried({"d": DELAYS, "e": DELAYS}, {"e": DELAYS})
    assert committed["d"].left
    fate, why = compared(committed["d"], DELAYS)
    assert fate is Fate.REFUSED
    assert "a program without it has run since" in why


def now(formats: StoreFormats, topic: str = "flights", **more: object) -> StoresNow:
    return StoresNow(NEW, {topic: formats}, **more)  # type: ignore[arg-type]


def committed(formats: StoreFormats | None, program: Fingerprint = OLD, partition: int = 0) -> dict[
    tuple[str, int], Committed | None
]:  # fmt: skip
    return {("flights", partition): Committed(None, program, None, formats)}


def test_aggregates_that_come_and_go() -> None:
    changes = store_changes(now({"n": DELAYS, "d": DELAYS}), committed({"d": DELAYS, "x": DELAYS}))
    assert changes == [
        StoreChange("n", "flights", Fate.NEW, "has what comes from now on: flights is read from where it was"),
        StoreChange("d", "flights", Fate.KEPT),
        StoreChange("x", "flights", Fate.LEFT),
    ]


def test_the_worst_of_all_partitions_counts() -> None:
    other = committed({"d": StoreFormat("z", {})}, partition=1)
    (change,) = store_changes(now({"d": DELAYS}), committed({"d": DELAYS}) | other | {("flights", 2): None})
    assert change.fate is Fate.REFUSED


def test_the_same_program_keeps_all_whatever_was_noted() -> None:
    assert [each.fate for each in store_changes(now({"d": DELAYS}), committed(None, NEW))] == [Fate.KEPT]
    (change,) = store_changes(now({"d": DELAYS}), committed(None, OLD))
    assert (change.fate, change.why) == (Fate.REFUSED, "another program's offsets don't say what it holds")


def test_a_store_that_the_fingerprint_does_not_tell_of_may_be_left_meanwhile() -> None:
    waiting = StoreFormat("w", {})
    both = {"d": DELAYS, "d-waiting": waiting}
    said = carried(both, {"d": DELAYS})
    assert [each.fate for each in store_changes(now(both), committed(said, NEW))] == [Fate.KEPT, Fate.REFUSED]
    said = carried(both, {})
    assert {each.fate for each in store_changes(now(both), committed(said, NEW))} == {Fate.KEPT}, "nobody has read it"


def test_a_store_that_was_reset_is_new() -> None:
    (change,) = store_changes(now({"d": DELAYS}), committed({}, NEW))
    why = "has what comes from now on: flights is read from where it was"
    assert change == StoreChange("d", "flights", Fate.NEW, why)
    (change,) = store_changes(now({"d": DELAYS}, filled={"d"}), committed({}, NEW))
    assert change.fate is Fate.KEPT, "a version before didn't note it"


@pytest.mark.parametrize(
    ("theirs", "fate"), [({"d": DELAYS}, Fate.KEPT), ({}, Fate.REFUSED), ({"x": DELAYS}, Fate.REFUSED)]
)
def test_offsets_of_the_same_program_that_say_nothing_count_where_no_other_has_run_since(
    theirs: StoreFormats, fate: Fate
) -> None:
    said = committed(None, NEW) | committed(theirs, OLD, partition=1)
    assert store_changes(now({"d": DELAYS}, filled={"d"}), said)[0].fate is fate


def test_state_of_which_nothing_tells_is_refused() -> None:
    (change,) = store_changes(now({"d": DELAYS}, filled={"d"}), committed({}))
    assert (change.fate, change.why) == (Fate.REFUSED, "its changelog has records of which nothing committed tells")
    (change,) = store_changes(now({"d": DELAYS}, filled={"d"}), {})
    assert change.fate is Fate.NEW, "as ever, where no program has committed"


def test_a_store_of_another_topic_is_refused() -> None:
    changes = store_changes(now({"d": DELAYS}, "rows"), committed({"d": DELAYS}))
    assert changes == [StoreChange("d", "rows", Fate.REFUSED, "it was made of flights, and is made of rows now")]


@pytest.mark.parametrize(("before", "topic"), [("app-d-repartition", "left"), ("left", "app-d-repartition")])
def test_a_join_that_was_made_of_a_topic_or_of_its_sides_says_how_to_go_on(before: str, topic: str) -> None:
    said = {(before, 0): Committed(None, OLD, None, {"d": DELAYS})}
    (change,) = store_changes(now({"d": DELAYS}, topic, of_joins={"d"}), said)
    assert change.fate is Fate.REFUSED
    assert change.why == (
        f"it was made of {before}, and is made of {topic} now: give join_stream the repartition= of before, or reset "
        f"the store"
    )


@pytest.mark.parametrize(
    ("rows", "pending", "fate"),
    [
        (DELAYS, 5, Fate.KEPT),
        (StoreFormat("k", {"n": "1", "more": "3"}), 5, Fate.KEPT),
        (StoreFormat("k", {"n": "9"}), 5, Fate.REFUSED),
        (StoreFormat("k", {"n": "9"}), 0, None),
    ],
)
def test_rows_that_are_still_in_a_repartition_topic_have_to_be_readable(
    rows: StoreFormat, pending: int, fate: Fate | None
) -> None:
    changes = store_changes(now({ROWS: rows}, pending={"flights": pending}), committed({ROWS: DELAYS}))
    assert [each.fate for each in changes] == ([] if fate is None else [fate])


names = st.sampled_from(["a", "b", "c", "é"])
digests = st.sampled_from(["1", "2"])
columns = st.dictionaries(names, digests)
formats = st.dictionaries(names, st.builds(StoreFormat, st.just("k"), columns))


@given(st.lists(formats, min_size=1, max_size=5))
def test_whatever_programs_come_after_each_other_no_value_is_taken_for_another(programs: list[StoreFormats]) -> None:
    """A model: what each column of a store may hold, of all programs that were let in."""
    held: dict[str, dict[str, set[str]]] = {}
    said: StoreFormats = {}
    gone: Set[str] = set()
    for program in programs:
        changes = store_changes(now(program), committed(said))
        refused = {each.store for each in changes if each.fate is Fate.REFUSED}
        for store, made in program.items():
            mixed = any(len({digest, *held.get(store, {}).get(name, ())}) > 1 for name, digest in made.columns.items())
            assert (store in refused) == (mixed or store in gone)
        if refused:
            continue
        for store, made in program.items():
            stored = held.setdefault(store, {})
            for name, digest in made.columns.items():
                stored.setdefault(name, set()).add(digest)
        gone = held.keys() - program.keys()
        said = carried(said, program)
        assert {each for each in said if said[each].left} == gone
        assert parsed(as_plain(said)) == said


def test_formats_are_written_as_short_as_may_be() -> None:
    plain = as_plain({"d": replace(DELAYS, dropped={"worst": "3"}), "e": replace(DELAYS, left=True), ROWS: DELAYS})
    assert plain == {
        "d": ["k", {"n": "1", "mean": "2"}, {"worst": "3"}],
        "e": ["k", {"n": "1", "mean": "2"}, {}, "left"],
        "": ["k", {"n": "1", "mean": "2"}],
    }


@pytest.mark.parametrize("plain", [5, {"d": 1}, {"d": []}, {"d": ["k", 3]}, {"d": ["k", {}, 3]}])
def test_what_are_no_formats(plain: object) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError)):
        parsed(plain)
