"""Where a stream is: offsets of its partitions, as they lie in Spark's checkpoint, and how far a micro-batch goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kohort.client.types import TopicPartition
from kohort.spark.reading import Range

Offsets = Mapping[TopicPartition, int]
"""The next offset to read, by partition."""


class DataLossError(ValueError):
    """Records that a stream should have read are gone."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f'{text}: records are lost. option("failOnDataLoss", "false") goes on with what is left, as does a new '
            "checkpointLocation"
        )


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as Spark keeps them, by topic and partition: `{"flights": {"0": 23}}`, as in startingOffsets."""
    found: dict[str, dict[str, int]] = {}
    for at, offset in sorted(offsets.items()):
        found.setdefault(at.topic, {})[str(at.partition)] = offset
    return found


def from_json(kept: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """The reverse of `to_json`."""
    return {
        TopicPartition(topic, int(number)): offset
        for topic, partitions in kept.items()
        for number, offset in partitions.items()
    }


def limited_end(start: Offsets, end: Offsets, most: int) -> dict[TopicPartition, int]:
    """The offsets from `start` towards `end` that are at most `most` further, in all.

    Each partition with records gets one, as far as that goes, and a share of the rest by how much it has: so none waits
    for ever for those with more. A partition whose end is before its start has been made anew, and isn't limited.

    Args:
        start: of all partitions of `end`; see `next_start`.
        end: the ends of the partitions.
        most: 1 at least.
    """
    sizes = {at: end[at] - start[at] for at in sorted(end)}
    behind = [at for at, size in sizes.items() if size > 0]
    if sum(sizes[at] for at in behind) <= most:
        return dict(end)
    turn = sum(start[at] for at in behind) % len(behind)
    taken = dict.fromkeys([*behind[turn:], *behind[:turn]][:most], 1)
    rest = most - len(taken)
    left = {at: sizes[at] - taken.get(at, 0) for at in behind}
    total = sum(left.values())
    shares = {at: rest * size // total for at, size in left.items()}
    short = rest - sum(shares.values())
    for at in sorted(left, key=lambda at: (-(rest * left[at] % total), at))[:short]:
        shares[at] += 1
    return {at: start[at] + taken.get(at, 0) + shares[at] if at in left else end[at] for at in end}


def next_start(start: Offsets, partitions: Iterable[TopicPartition], first: Offsets) -> dict[TopicPartition, int]:
    """Where partitions are read on; new ones from their beginning.

    A new partition of a topic that is read already begins at 0, or records of it are lost; a topic that is new to the
    stream begins where it does now.

    Args:
        start: where the stream is.
        partitions: which are wanted.
        first: where the logs of new partitions begin.
    """
    known = {at.topic for at in start}
    return {at: start.get(at, 0 if at.topic in known else first.get(at, 0)) for at in partitions}


def check_gone(start: Offsets, end: Offsets, *, fail_on_data_loss: bool) -> None:
    """Raises DataLossError if partitions are gone that the stream has read, and that is an error."""
    if fail_on_data_loss and (gone := sorted(set(start) - set(end))):
        raise DataLossError(f"{gone[0]} isn't there any more")


def batch_ranges(start: Offsets, end: Offsets, first: Offsets, *, fail_on_data_loss: bool) -> list[Range]:
    """The ranges of a micro-batch, none of them empty.

    Args:
        start, end: where it begins and ends. A partition that `start` lacks is new, and read from its beginning.
        first: where the logs of the partitions begin now.
        fail_on_data_loss: whether records that are gone are an error; else what is left is read.

    Raises:
        DataLossError: offsets from `start` on aren't there any more.
    """
    ranges = []
    for at, begin in sorted(next_start(start, end, first).items()):
        if begin == end[at]:
            continue
        if at not in first:
            why = f"{at} isn't there any more"
        elif end[at] < begin:
            why = f"{at} was read up to {begin}, and ends at {end[at]} now, as if it had been deleted and made anew"
        elif begin < first[at]:
            why = f"{at} was read up to {begin}, and begins at {first[at]} now, since its retention deleted the rest"
        else:
            ranges.append(Range(*at, begin, end[at]))
            continue
        if fail_on_data_loss:
            raise DataLossError(why)
        if at in first and first[at] < end[at]:
            ranges.append(Range(*at, first[at], end[at]))
    return ranges
