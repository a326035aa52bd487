"""Pages of records, one after the other: each record that is wanted is on one of them, and on no other."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.types import Record, TopicPartition
from kohort.console.record_paging import MOST_POSITIONS, page_of_records
from kohort.console.record_ranges import RecordChoice, Where, parse_positions, positions_text, ranges


def record(partition: int, offset: int, timestamp: int) -> Record:
    return Record("t", partition, offset, timestamp, None, None, ())


TOPICS = st.lists(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=12), min_size=1, max_size=3)
"""By partition the records' times, and whether each is wanted."""


@given(TOPICS, st.sampled_from([Where.END, Where.OFFSET]), st.integers(1, 5), st.integers(1, 6), st.booleans())
def test_pages_have_each_wanted_record_once(
    topic: list[list[tuple[int, bool]]], where: Where, count: int, window: int, filtered: bool
) -> None:
    logs: Mapping[TopicPartition, list[tuple[Record, bool]]] = {
        TopicPartition("t", number): [
            (record(number, offset, time), wanted or not filtered) for offset, (time, wanted) in enumerate(log)
        ]
        for number, log in enumerate(topic)
    }
    ends = {at: (0, len(log)) for at, log in logs.items()}
    seen: list[tuple[int, int]] = []
    positions: dict[int, int] | None = {}
    for _ in range(200):
        choice = RecordChoice(None, where, 0, count, parse_positions(positions_text(positions or {})))
        wide = ranges(choice, ends, None, window if filtered else None)
        found: dict[TopicPartition, list[Record]] = {}
        reached = {}
        for at, each in wide.items():
            stop = each.stop if where is Where.END else min(each.stop, each.start + max(window, count))
            found[at] = [one for one, wanted in logs[at][each.start : stop] if wanted]
            reached[at] = stop
            if where is Where.OFFSET and len(found[at]) > count:
                del found[at][count:]
                reached[at] = found[at][-1].offset + 1
        page = page_of_records(choice, wide, reached, found)
        assert len(page.records) <= count
        assert [each.timestamp for each in page.records] == sorted(each.timestamp for each in page.records)
        seen += [(each.partition, each.offset) for each in page.records]
        positions = page.positions
        if positions is None:
            break
    assert positions is None
    wanted = [(one.partition, one.offset) for log in logs.values() for one, is_wanted in log if is_wanted]
    assert sorted(seen) == wanted


def test_what_did_not_come_in_time_has_no_page_before_it() -> None:
    """From the end, what is shown is the last of what was found: unless all was looked at, it may be the wrong ones."""
    at = TopicPartition("t", 0)
    choice = RecordChoice(count=2)
    wide = ranges(choice, {at: (0, 10)}, None, 5)
    assert page_of_records(choice, wide, {at: 10}, {at: []}).positions == {0: 5}
    assert page_of_records(choice, wide, {at: 7}, {at: []}).positions is None


def test_positions_of_very_many_partitions_are_in_no_link() -> None:
    choice = RecordChoice(where=Where.OFFSET, count=1)
    for partitions, known in ((MOST_POSITIONS, True), (MOST_POSITIONS + 1, False)):
        ends = {TopicPartition("t", number): (0, 10) for number in range(partitions)}
        assert (page_of_records(choice, ranges(choice, ends), {}, {}).positions is not None) is known
