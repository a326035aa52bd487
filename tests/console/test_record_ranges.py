from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.types import TopicPartition
from kohort.console.record_ranges import (
    MOST_COUNT,
    ChoiceError,
    OffsetRange,
    RecordChoice,
    Where,
    parse_positions,
    parse_time,
    ranges,
)

ENDS = st.dictionaries(
    st.integers(0, 5).map(lambda number: TopicPartition("t", number)),
    st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)).map(lambda ends: (min(ends), max(ends))),
)


@given(ENDS, st.builds(RecordChoice, st.none(), st.sampled_from(Where), st.integers(0, 1_200), st.integers(1, 50)))
def test_ranges_lie_within_the_log(ends: dict[TopicPartition, tuple[int, int]], choice: RecordChoice) -> None:
    times = dict.fromkeys(ends, choice.value) if choice.where is Where.TIME else None
    for at, found in ranges(choice, ends, times).items():
        first, end = ends[at]
        assert first <= found.start < found.stop == end
        if choice.where is Where.END:
            assert found.stop - found.start <= choice.count


def test_where_pages_begin() -> None:
    at, ends = TopicPartition("t", 0), {TopicPartition("t", 0): (10, 100)}
    assert ranges(RecordChoice(count=5), ends) == {at: OffsetRange(95, 100, 10, 100)}
    assert ranges(RecordChoice(where=Where.OFFSET, value=3), ends) == {at: OffsetRange(10, 100, 10, 100)}
    assert ranges(RecordChoice(where=Where.OFFSET, value=100), ends) == {}
    assert ranges(RecordChoice(where=Where.TIME, value=3), ends, {at: 40}) == {at: OffsetRange(40, 100, 10, 100)}
    assert ranges(RecordChoice(where=Where.TIME, value=3), ends, {at: -1}) == {}


def test_parameters_are_read() -> None:
    assert RecordChoice.of({}) == RecordChoice()
    fields = {"partition": "3", "from": "offset", "offset": "12", "count": "99999"}
    assert RecordChoice.of(fields) == RecordChoice(3, Where.OFFSET, 12, MOST_COUNT)
    assert RecordChoice.of({"from": "time", "time": "1970-01-01T00:01"}).value == 60_000


@given(st.dictionaries(st.sampled_from(["partition", "from", "offset", "time", "count", "at"]), st.text(max_size=20)))
def test_any_parameters_are_read_or_refused(fields: dict[str, str]) -> None:
    try:
        RecordChoice.of(fields)
    except ChoiceError as error:
        assert str(error)


def test_another_page_goes_on_where_one_has_ended() -> None:
    at, ends = TopicPartition("t", 0), {TopicPartition("t", 0): (10, 100)}
    fields = {"from": "end", "count": "5", "at": "0:40"}
    assert ranges(RecordChoice.of(fields), ends) == {at: OffsetRange(35, 40, 10, 100)}
    assert ranges(RecordChoice.of(fields), ends, None, 20) == {at: OffsetRange(20, 40, 10, 100)}
    for where in ("offset", "time"):
        choice = RecordChoice.of({"from": where, "at": "0:40"})
        assert ranges(choice, ends) == {at: OffsetRange(40, 100, 10, 100)}
    for text in ("1", "0:x", "0:1,", "-1:2"):
        with pytest.raises(ChoiceError):
            parse_positions(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2013-01-01T05:00", 1_357_016_400_000),
        ("2013-01-01T05:00:00+01:00", 1_357_012_800_000),
        ("1357016400000", 1_357_016_400_000),
        ("0001-01-01", 0),
    ],
)
def test_times(text: str, ms: int) -> None:
    assert parse_time(text) == ms


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ChoiceError, match="'soon' is no time; 2013-01-01T05:00 is one"):
        parse_time("soon")
