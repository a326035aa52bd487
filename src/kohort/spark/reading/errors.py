"""The error of a range of offsets that can't be read."""

from __future__ import annotations


class RangeError(Exception):
    """A range of offsets that can't be read: says which, how far it was read, and why.

    Attributes:
        topic, partition: where.
        start, end: the offsets asked for, the end exclusive.
        offset: where reading came to a halt.
    """

    def __init__(self, topic: str, partition: int, start: int, end: int, offset: int, reason: str) -> None:
        super().__init__(topic, partition, start, end, offset, reason)  # as it was called, so that it can be pickled
        self.topic, self.partition, self.start, self.end, self.offset = topic, partition, start, end, offset
        self.reason = reason

    def __str__(self) -> str:
        where = f"topic {self.topic}, partition {self.partition}, offsets {self.start} to {self.end} (exclusive)"
        return f"{where}: {self.reason}" + ("" if self.offset == self.start else f"; read up to {self.offset}")
