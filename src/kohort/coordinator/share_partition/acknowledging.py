"""What a member's acknowledgement would change; nothing changes if any of it is refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from kohort.coordinator.share_partition.changes import Cause, DeadLetter, Transition
from kohort.coordinator.share_partition.in_flight import InFlightBatch, Run
from kohort.coordinator.share_partition.settings import SharePartitionSettings
from kohort.coordinator.share_partition.states import AcknowledgeType, Event, RecordState, is_terminal, next_state
from kohort.coordinator.share_partition.window import Window
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = ["AckBatch", "Acknowledging", "release_event"]

_EVENTS = {
    AcknowledgeType.GAP: Event.GAP,
    AcknowledgeType.ACCEPT: Event.ACCEPT,
    AcknowledgeType.RELEASE: Event.RELEASE,
    AcknowledgeType.REJECT: Event.REJECT,
    AcknowledgeType.RENEW: Event.RENEW,
}


class AckBatch(NamedTuple):
    """An acknowledgement of records from the first offset to the last one.

    Attributes:
        types: `AcknowledgeType` values: one for all, or one for each.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]


def release_event(run: Run, settings: SharePartitionSettings) -> Event:
    """What releasing comes to: the record is available again, unless it was delivered as often as it may be."""
    if run.delivery_count < settings.delivery_count_limit:
        return Event.RELEASE
    return Event.DEAD_LETTER if settings.dead_letters else Event.EXHAUST


class Acknowledging:
    """Gathers what becomes of a member's records.

    Attributes:
        transitions: pending from now on.
        dead_letters: what the transitions make of it, once they are committed.
        renewed: whose locks begin anew.
    """

    def __init__(self, window: Window, settings: SharePartitionSettings, member_id: str) -> None:
        self.transitions: list[Transition] = []
        self.dead_letters: list[DeadLetter] = []
        self.renewed: list[tuple[InFlightBatch, Run]] = []
        self._window = window
        self._settings = settings
        self._member_id = member_id

    def acknowledge(self, batches: Sequence[AckBatch]) -> None:
        """Raises KafkaError INVALID_REQUEST or INVALID_RECORD_STATE; then nothing is pending."""
        try:
            for batch in batches:
                for first, last, type_ in _by_type(batch):
                    self._acknowledge(first, last, type_)
        except KafkaError:
            self._take_back()
            raise

    def move(self, batch: InFlightBatch, run: Run, event: Event) -> None:
        """Makes an acquired run's next state pending."""
        if event is Event.REJECT and self._settings.dead_letters:
            event, cause = Event.DEAD_LETTER, Cause.REJECTED
        else:
            cause = Cause.EXHAUSTED
        target = next_state(run.state, event)
        run.pending = target
        if is_terminal(target):
            self._window.complete += run.records
        elif target is RecordState.ARCHIVING:
            self.dead_letters.append(DeadLetter(run.first, run.last, cause, run.delivery_count))
        self.transitions.append(Transition(batch, run, target))

    def _acknowledge(self, first: int, last: int, type_: AcknowledgeType) -> None:
        """Offsets before the start offset are done, whoever asks; so are those that no fetch ever returned."""
        if type_ is AcknowledgeType.RENEW and not self._settings.renew_enabled:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")
        if last < self._window.start_offset:
            return
        first = max(first, self._window.start_offset)
        batches = self._window.batches.between(first, last)
        if not batches or last > batches[-1].last:
            if not self._window.batches:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, f"No records are in flight, so {first} isn't acquired."
                )
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Offsets {first} to {last} aren't all in flight.")
        for batch in batches:
            for run in batch.between(first, last):
                self._check(run)
            for run in batch.cut_out(first, last):
                if type_ is AcknowledgeType.RENEW:
                    self.renewed.append((batch, run))
                elif type_ is AcknowledgeType.RELEASE:
                    self.move(batch, run, release_event(run, self._settings))
                else:
                    self.move(batch, run, _EVENTS[type_])

    def _check(self, run: Run) -> None:
        if run.lock is None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"Offsets {run.first} to {run.last} are {run.state.name}, not ACQUIRED."
            )
        if run.lock.member_id != self._member_id:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE, f"Another member has acquired offsets {run.first} to {run.last}."
            )
        if run.pending is not None:
            raise KafkaError(
                ErrorCode.INVALID_RECORD_STATE,
                f"An acknowledgement of offsets {run.first} to {run.last} is under way.",
            )

    def _take_back(self) -> None:
        for _, run, target in self.transitions:
            run.pending = None
            if is_terminal(target):
                self._window.complete -= run.records
        touched = [(batch, run.first, run.last) for batch, run, _ in self.transitions]
        touched += [(batch, run.first, run.last) for batch, run in self.renewed]
        for batch, first, last in touched:
            batch.join(first, last)


def _by_type(batch: AckBatch) -> Iterator[tuple[int, int, AcknowledgeType]]:
    """Neighbouring offsets with the same type."""
    first, last, types = batch
    if first > last or (len(types) != 1 and len(types) != last - first + 1):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Offsets {first} to {last} can't be acknowledged with {len(types)} types."
        )
    groups = [(types[0], last - first + 1)] if len(types) == 1 else [(t, sum(1 for _ in g)) for t, g in groupby(types)]
    for value, count in groups:
        try:
            type_ = AcknowledgeType(value)
        except ValueError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{value} is no type of acknowledgement.") from None
        yield first, first + count - 1, type_
        first += count
