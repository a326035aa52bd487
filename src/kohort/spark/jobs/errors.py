"""Errors of jobs, beside Spark's own."""

from __future__ import annotations


class BadRecordError(Exception):
    """A record couldn't be read, and the program says that this ends it (`Fail`).

    Attributes:
        topic, partition, offset: which record.
        reason: what is wrong with it.
    """

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(f"{topic}-{partition} at offset {offset}: {reason}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[type[BadRecordError], tuple[str, int, int, str]]:
        return BadRecordError, (self.topic, self.partition, self.offset, self.reason)


class StoredValueError(Exception):
    """A record of a store, a changelog or a repartition topic isn't as this program writes them."""


class ProcessorError(Exception):
    """A function of the user's that keeps state gave, or wrote, something else than the program says."""


class AggregationError(Exception):
    """An Arrow aggregation function gave back something else than it should, or a sum is too large for its type."""
