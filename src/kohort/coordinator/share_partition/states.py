"""The states of a record in a share partition, and what moves it from one to the next: all of it is in this table.

| State | accept | release | exhaust | reject, gap | remove | dead letter | written | acquire | renew |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| AVAILABLE | | | ARCHIVED | | ARCHIVED | ARCHIVING | | ACQUIRED | |
| ACQUIRED | ACKNOWLEDGED | AVAILABLE | ARCHIVED | ARCHIVED | ARCHIVED | ARCHIVING | | | ACQUIRED |
| ARCHIVING | | | | | | | ARCHIVED | | |
| ACKNOWLEDGED, ARCHIVED | | | | | | | | | |

What isn't in the table can't happen. Events:

- acquire: a member is given the record; the delivery count rises, the acquisition lock begins.
- accept, reject, gap, renew: the member's acknowledgement (`AcknowledgeType`); a gap is an offset without a record.
- release: by the member's acknowledgement, because its share session ended, or because its lock expired. Where the
  record was delivered as often as the group allows, that is exhaust instead.
- dead letter: instead of reject and exhaust in a group that keeps dead letters (KIP-1191). The record stays ARCHIVING,
  also across restarts, until its dead letter is written.
- remove: the record needn't be delivered: its transaction was aborted, or compaction removed it.

accept, release, reject and gap of a member are pending until they are persisted (`changes.py`); the rest is at once.
Before the start offset there are no states: all of it is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum, auto
from types import MappingProxyType
from typing import Final

__all__ = ["TRANSITIONS", "AcknowledgeType", "Event", "RecordState", "is_terminal", "next_state"]


class RecordState(IntEnum):
    """The value is what is persisted (DeliveryState); ACQUIRED never is."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """What a member says of a record; the values are those of ShareFetch and ShareAcknowledge."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Event(Enum):
    ACQUIRE = auto()
    ACCEPT = auto()
    RELEASE = auto()
    EXHAUST = auto()
    REJECT = auto()
    GAP = auto()
    RENEW = auto()
    REMOVE = auto()
    DEAD_LETTER = auto()
    WRITTEN = auto()


TRANSITIONS: Final[Mapping[RecordState, Mapping[Event, RecordState]]] = MappingProxyType(
    {
        RecordState.AVAILABLE: {
            Event.ACQUIRE: RecordState.ACQUIRED,
            Event.EXHAUST: RecordState.ARCHIVED,
            Event.REMOVE: RecordState.ARCHIVED,
            Event.DEAD_LETTER: RecordState.ARCHIVING,
        },
        RecordState.ACQUIRED: {
            Event.ACCEPT: RecordState.ACKNOWLEDGED,
            Event.RELEASE: RecordState.AVAILABLE,
            Event.EXHAUST: RecordState.ARCHIVED,
            Event.REJECT: RecordState.ARCHIVED,
            Event.GAP: RecordState.ARCHIVED,
            Event.RENEW: RecordState.ACQUIRED,
            Event.REMOVE: RecordState.ARCHIVED,
            Event.DEAD_LETTER: RecordState.ARCHIVING,
        },
        RecordState.ARCHIVING: {Event.WRITTEN: RecordState.ARCHIVED},
        RecordState.ACKNOWLEDGED: {},
        RecordState.ARCHIVED: {},
    }
)


def next_state(state: RecordState, event: Event) -> RecordState:
    """The state after an event; KeyError if it can't happen in this state."""
    return TRANSITIONS[state][event]


def is_terminal(state: RecordState | None) -> bool:
    """Whether the record's delivery is complete: it is never given to a member again."""
    return state is RecordState.ACKNOWLEDGED or state is RecordState.ARCHIVED
