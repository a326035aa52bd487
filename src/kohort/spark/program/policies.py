"""What becomes of records that can't be decoded."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DeadLetter", "Drop", "ErrorPolicy", "Fail"]


@dataclass(frozen=True, slots=True)
class Fail:
    """The application stops, and says which record it was (topic, partition, offset) and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The record is left out, and counted."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The record goes to another topic as it was read, with the error and its origin in headers. It is counted."""

    topic: str


ErrorPolicy = Fail | Drop | DeadLetter
