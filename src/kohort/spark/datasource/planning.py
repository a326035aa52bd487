"""Resolves which offsets are read, and divides them among Spark partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kohort.client.types import TopicPartition
from kohort.spark.datasource.options import EARLIEST, LATEST, Bound, ReadOptions
from kohort.spark.reading import Range, RangeReader


def plan_ranges(reader: RangeReader, options: ReadOptions) -> list[Range]:
    """Resolves options to ranges of offsets, none of them empty.

    Raises:
        ValueError: a topic, partition or offset doesn't exist.
        KafkaError, ClientError: no broker answers.
    """
    partitions = partitions_to_read(reader, options)
    first = log_offsets(reader, partitions, EARLIEST, options.committed)
    last = log_offsets(reader, partitions, LATEST, options.committed)
    starts = resolve_bound(reader, options, options.start, "starting", first, last)
    ends = resolve_bound(reader, options, options.end, "ending", first, last)
    return [Range(*at, starts[at], ends[at]) for at in partitions if starts[at] < ends[at]]


def divide_ranges(ranges: list[Range], min_ranges: int, max_records: int | None) -> list[Range]:
    """Divides ranges evenly into at least `min_ranges`, each of at most `max_records`."""
    total = sum(each.end - each.start for each in ranges)
    if not total:
        return []
    divided = []
    for each in ranges:
        size = each.end - each.start
        count = -(-size * min_ranges // total) if min_ranges > len(ranges) else 1
        if max_records is not None:
            count = max(count, -(-size // max_records))
        count = min(count, size)
        cuts = [each.start + size * number // count for number in range(count + 1)]
        divided += [Range(each.topic, each.partition, cuts[n], cuts[n + 1]) for n in range(count)]
    return divided


def partitions_to_read(reader: RangeReader, options: ReadOptions) -> list[TopicPartition]:
    """The partitions that exist now, of what the options name. Raises as `plan_ranges`."""
    if options.assigned is not None:
        wanted = options.assigned
        for topic, numbers in wanted.items():
            existing = reader.partitions(topic)
            if missing := set(numbers) - set(existing):
                raise ValueError(f"topic {topic} has no partition {min(missing)}, only {existing[0]} to {existing[-1]}")
        return [TopicPartition(topic, number) for topic, numbers in wanted.items() for number in numbers]
    topics: Iterable[str] = options.topics
    if options.pattern is not None:
        try:
            pattern = re.compile(options.pattern)
        except re.error as error:
            raise ValueError(f"subscribePattern={options.pattern!r}: {error}") from None
        topics = [each for each in reader.topics() if pattern.fullmatch(each)]
    return [TopicPartition(topic, number) for topic in topics for number in reader.partitions(topic)]


def log_offsets(
    reader: RangeReader, partitions: list[TopicPartition], time: int, committed: bool
) -> dict[TopicPartition, int]:
    """The first offsets (`time` is EARLIEST) or the ends (LATEST) of partitions.

    Args:
        committed: whether the end is where an open transaction begins, if there is one.
    """
    found = reader.offsets(dict.fromkeys(partitions, time), committed=committed)
    return {at: 0 if offset is None else offset for at, offset in found.items()}


def resolve_bound(
    reader: RangeReader,
    options: ReadOptions,
    bound: Bound,
    which: str,
    first: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The offsets of a bound, within the logs."""
    if bound.offset is not None:
        return first if bound.offset == EARLIEST else last
    if bound.time is not None or bound.times is not None:
        times = {at: bound.time if bound.time is not None else _entry(bound.times, at, which) for at in first}
        found = reader.offsets(times, committed=options.committed)
        # None: no record is that late. Then there is nothing to read, or everything up to the end.
        return {at: last[at] if offset is None else min(offset, last[at]) for at, offset in found.items()}
    given = {at: _entry(bound.offsets, at, which) for at in first}
    return {at: _check_offset(at, offset, which, first[at], last[at], options) for at, offset in given.items()}


def _entry(given: object, at: TopicPartition, which: str) -> int:
    assert isinstance(given, dict)
    try:
        return int(given[at.topic][at.partition])
    except KeyError:
        raise ValueError(f"the {which} offsets lack {at}: each partition needs one") from None


def _check_offset(at: TopicPartition, offset: int, which: str, first: int, last: int, options: ReadOptions) -> int:
    if offset in (EARLIEST, LATEST):
        return first if offset == EARLIEST else last
    if not first <= offset <= last:
        if options.fail_on_data_loss:
            hint = 'option("failOnDataLoss", "false") reads what is left'
            raise ValueError(f"{at}: the {which} offset {offset} isn't there: the log has {first} to {last}; {hint}")
        return min(max(offset, first), last)
    return offset
