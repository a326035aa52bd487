"""Error policies: what becomes of records that can't be decoded, or are misplaced."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DeadLetter", "Drop", "ErrorPolicy", "Fail"]


@dataclass(frozen=True, slots=True)
class Fail:
    """The instance stops, and says which record it was (topic, partition, offset) and what is wrong with it.

    The next owner of its task stops there, too. Nothing of the epoch that the record is in has counted: with another
    policy, or with the group's offset behind the record, the application goes on.
    """


@dataclass(frozen=True, slots=True)
class Drop:
    """The record is left out, and counted."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The record goes to another topic as it was read, with the error and its origin in headers. It is counted.

    In the transaction of the epoch: once. A global table, which is read outside of transactions, can't have it.

    Attributes:
        topic: where to; it must exist.
    """

    topic: str


ErrorPolicy = Fail | Drop | DeadLetter
