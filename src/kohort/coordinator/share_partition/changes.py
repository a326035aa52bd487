"""What a share partition wants persisted, and what becomes of it.

A change is written with the partition's state epoch, and then either committed or rolled back
(`partition.py::SharePartition.commit`, `rollback`). Several may be under way, but they have to be written in the order
in which they were made: a later one may say other things of the same records. The start offset of a change is the one
that counts before it, for another change that is under way may fail; the delivery-complete count takes all for done.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kohort.coordinator.share_partition.in_flight import InFlightBatch, Run
from kohort.coordinator.share_partition.persisted import StateBatch
from kohort.coordinator.share_partition.states import RecordState

__all__ = ["Cause", "Change", "DeadLetter", "Transition"]


class Cause(Enum):
    """Why there is a dead letter; the value is the sentence in its headers."""

    REJECTED = "Offset rejected by client."
    EXHAUSTED = "Offset delivery count exceeded the threshold."


class DeadLetter(NamedTuple):
    """Records to copy to the dead letter topic; `SharePartition.dead_lettered` says that it is done.

    Attributes:
        delivery_count: how often each of them was delivered.
    """

    first_offset: int
    last_offset: int
    cause: Cause
    delivery_count: int


class Transition(NamedTuple):
    """Records that are in a new state once the change is committed."""

    batch: InFlightBatch
    run: Run
    target: RecordState


@dataclass(slots=True, eq=False)
class Change:
    """What to persist; to be committed at once if `needs_write` is false.

    Attributes:
        start_offset: the start offset to persist.
        delivery_complete_count: how many records from the start offset on are acknowledged or archived (KIP-1226).
        batches: the states to persist, by offset.
        dead_letters: to be written once the change is committed; the records are ARCHIVING until then.
        needs_write: whether there is anything to persist.
        transitions, at_once, dead_letters_at_once, under_way: for the partition alone.
    """

    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()
    needs_write: bool = False
    transitions: list[Transition] = field(default_factory=list, repr=False)
    at_once: list[tuple[int, int]] = field(default_factory=list, repr=False)
    dead_letters_at_once: list[DeadLetter] = field(default_factory=list, repr=False)
    under_way: bool = field(default=True, repr=False)
