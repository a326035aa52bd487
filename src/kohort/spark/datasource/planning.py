"""Which offsets to read, and how they are divided among Spark's partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kohort.client.types import TopicPartition
from kohort.spark.datasource.options import EARLIEST, LATEST, Bound, ReadOptions
from kohort.spark.reading import Range, RangeReader

__all__ = ["divided", "planned"]


def planned(reader: RangeReader, options: ReadOptions) -> list[Range]:
    """The ranges that options stand for now, none of them empty.

    Raises:
        ValueError: a topic, partition or offset that there isn't.
        KafkaError, ClientError: the cluster doesn't say.
    """
    partitions = _partitions(reader, options)
    first = _offsets(reader, partitions, EARLIEST, options.committed)
    last = _offsets(reader, partitions, LATEST, options.committed)
    starts = _resolved(reader, options, options.start, "starting", first, last)
    ends = _resolved(reader, options, options.end, "ending", first, last)
    return [Range(*at, starts[at], ends[at]) for at in partitions if starts[at] < ends[at]]


def divided(ranges: list[Range], least: int, most_records: int | None) -> list[Range]:
    """Ranges cut into smaller ones: as even as can be, `least` of them or more, each of `most_records` or less."""
    total = sum(each.end - each.start for each in ranges)
    if not total:
        return []
    parts = []
    for each in ranges:
        size = each.end - each.start
        count = -(-size * least // total) if least > len(ranges) else 1
        if most_records is not None:
            count = max(count, -(-size // most_records))
        count = min(count, size)
        cuts = [each.start + size * number // count for number in range(count + 1)]
        parts += [Range(each.topic, each.partition, cuts[n], cuts[n + 1]) for n in range(count)]
    return parts


def _partitions(reader: RangeReader, options: ReadOptions) -> list[TopicPartition]:
    if options.assigned is not None:
        wanted = options.assigned
        for topic, numbers in wanted.items():
            there = reader.partitions(topic)
            if missing := set(numbers) - set(there):
                raise ValueError(f"topic {topic} has no partition {min(missing)}, only {there[0]} to {there[-1]}")
        return [TopicPartition(topic, number) for topic, numbers in wanted.items() for number in numbers]
    topics: Iterable[str] = options.topics
    if options.pattern is not None:
        try:
            pattern = re.compile(options.pattern)
        except re.error as error:
            raise ValueError(f"subscribePattern={options.pattern!r}: {error}") from None
        topics = [each for each in reader.topics() if pattern.fullmatch(each)]
    return [TopicPartition(topic, number) for topic in topics for number in reader.partitions(topic)]


def _offsets(
    reader: RangeReader, partitions: list[TopicPartition], time: int, committed: bool
) -> dict[TopicPartition, int]:
    found = reader.offsets(dict.fromkeys(partitions, time), committed=committed)
    return {at: 0 if offset is None else offset for at, offset in found.items()}


def _resolved(
    reader: RangeReader,
    options: ReadOptions,
    bound: Bound,
    which: str,
    first: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """The offsets of a bound, within what the logs have."""
    if bound.offset is not None:
        return first if bound.offset == EARLIEST else last
    if bound.time is not None or bound.times is not None:
        times = {at: bound.time if bound.time is not None else _of(bound.times, at, which) for at in first}
        found = reader.offsets(times, committed=options.committed)
        # No record is that late: then there's nothing to read, or everything up to the end.
        return {at: last[at] if offset is None else min(offset, last[at]) for at, offset in found.items()}
    given = {at: _of(bound.offsets, at, which) for at in first}
    return {at: _checked(at, offset, which, first[at], last[at], options) for at, offset in given.items()}


def _of(given: object, at: TopicPartition, which: str) -> int:
    assert isinstance(given, dict)
    try:
        return int(given[at.topic][at.partition])
    except KeyError:
        raise ValueError(f"the {which} offsets don't say anything of {at}: each partition needs one") from None


def _checked(at: TopicPartition, offset: int, which: str, first: int, last: int, options: ReadOptions) -> int:
    if offset in (EARLIEST, LATEST):
        return first if offset == EARLIEST else last
    if not first <= offset <= last:
        if options.fail_on_data_loss:
            hint = 'option("failOnDataLoss", "false") reads what is left'
            raise ValueError(f"{at}: the {which} offset {offset} isn't there: the log has {first} to {last}; {hint}")
        return min(max(offset, first), last)
    return offset
