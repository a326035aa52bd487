"""What became of each offset that a broker has locked for us: the book of one partition.

An offset is, from the book's view, in one of these states:

| state | how it comes there |
| --- | --- |
| held | acquired, or the renewal of its lock was answered |
| pending | acknowledged by the user (or as a gap), not sent |
| in flight | sent; the answer isn't here |
| settled | answered: reported once, with its error if there was one |
| lost | session, leader or lock are gone before it was acknowledged: acknowledging it later is reported as an error |

What is pending or in flight when the session ends is settled with that error: each acknowledgement is reported exactly
once, and one that the broker may have taken is never sent again. After an error with which brokers take none of a
request's ranges, the ranges are sent again in halves, so that one lost lock doesn't spoil the others' acknowledgements.

Costs: a binary search for an acknowledgement; memory grows with the number of ranges, not of records.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

__all__ = ["GAP", "AcknowledgeType", "Acknowledgement", "AcknowledgementBook", "OffsetSpan", "merged"]


class AcknowledgeType(enum.IntEnum):
    """What became of a record; the wire's numbers.

    ACCEPT: done. RELEASE: another delivery, to any member, as long as its delivery count allows. REJECT: unusable, no
    more deliveries. RENEW: still at work, lock it for another while (KIP-1222).
    """

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


GAP: Final = 0
"""For offsets without a record: compacted away, of control batches."""

_LOST_KEPT: Final = 1_000
"""Ranges that are remembered as lost; acknowledging an older one is an error all the same."""


class OffsetSpan(NamedTuple):
    """Offsets from `first` to `last`, itself included."""

    first: int
    last: int


class Acknowledgement(NamedTuple):
    """What became of the offsets from `first` to `last`, itself included. The type is `GAP` or an `AcknowledgeType`."""

    first: int
    last: int
    type: int

    @property
    def renews(self) -> bool:
        """Whether it renews locks."""
        return self.type == AcknowledgeType.RENEW


class _Batch(NamedTuple):
    """Acknowledgements that are sent together; `number` rises, and what is sent again keeps it."""

    number: int
    ranges: tuple[Acknowledgement, ...]
    since: float


class AcknowledgementBook:
    """A partition's offsets, from their acquisition to their settlement. Times are any clock's ms.

    Attributes:
        pending_since: when the oldest pending acknowledgement was given; None without any.
    """

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._deadlines: list[float] = []
        self._pending: list[Acknowledgement] = []
        self._again: deque[_Batch] = deque()
        self._in_flight: _Batch | None = None
        self._taken = 0
        self._lost: deque[OffsetSpan] = deque(maxlen=_LOST_KEPT)
        self.pending_since: float | None = None

    # What is held.

    def acquire(self, first: int, last: int, deadline: float) -> Sequence[Acknowledgement]:
        """The broker has locked these offsets for us, until about `deadline`.

        Returns:
            What was acknowledged of them and not sent: the locks it was for have ended, so that it doesn't count.
        """
        self._cut(first, last)
        late = self._withdraw(first, last)
        at = bisect_left(self._firsts, first)
        self._firsts.insert(at, first)
        self._lasts.insert(at, last)
        self._deadlines.insert(at, deadline)
        if self._lost:
            self._lost = deque(_without(self._lost, first, last), _LOST_KEPT)
        return late

    def _withdraw(self, first: int, last: int) -> list[Acknowledgement]:
        """Takes back what isn't in flight."""
        unsent = [*self._pending, *(each for batch in self._again for each in batch.ranges)]
        late = [
            Acknowledgement(max(first, each.first), min(last, each.last), each.type)
            for each in unsent
            if each.first <= last and each.last >= first
        ]
        if late:
            self._pending = _cut_out(self._pending, first, last)
            again = [batch._replace(ranges=tuple(_cut_out(batch.ranges, first, last))) for batch in self._again]
            self._again = deque(batch for batch in again if batch.ranges)
            if not self._pending:
                self.pending_since = None
        return [each for each in late if each.type != GAP]

    def held(self, first: int = 0, last: int = 2**63 - 1) -> list[OffsetSpan]:
        """Returns the held ranges among these offsets."""
        found = []
        for at in range(self._index(first), len(self._firsts)):
            if self._firsts[at] > last:
                break
            found.append(OffsetSpan(max(first, self._firsts[at]), min(last, self._lasts[at])))
        return found

    def drop(self, first: int, last: int) -> None:
        """These offsets aren't held any more, and the user never had them."""
        self._cut(first, last)

    def next_deadline(self, now: float) -> float | None:
        """Returns when the next lock of a held offset ends; None if all have."""
        return min((deadline for deadline in self._deadlines if deadline > now), default=None)

    def expired(self, first: int, last: int, now: float) -> bool:
        """Whether a lock of these offsets has ended, by our clock, or none is held."""
        begin, end = self._index(first), bisect_right(self._firsts, last)
        return begin >= end or min(self._deadlines[begin:end]) <= now

    # Acknowledging.

    def acknowledge(self, first: int, last: int, kind: int, now: float) -> list[OffsetSpan]:
        """Notes what became of offsets; returns those that aren't held, to be reported as failed."""
        at = self._index(first)
        if at < len(self._firsts) and self._firsts[at] <= first and last <= self._lasts[at]:  # as almost always
            self._note((OffsetSpan(first, last),), kind, now)
            return []
        held = self.held(first, last)
        missing = list(_complement(held, first, last))
        self._note(held, kind, now)
        if missing and self._lost:
            self._lost = deque(_without(self._lost, first, last), _LOST_KEPT)
        return missing

    def acknowledge_rest(self, first: int, last: int, kind: int, now: float) -> list[OffsetSpan]:
        """As `acknowledge`, for offsets that the user hasn't acknowledged yet; returns those whose lock was lost."""
        self._note(self.held(first, last), kind, now)
        if not self._lost:
            return []
        lost = [
            OffsetSpan(max(first, each.first), min(last, each.last))
            for each in self._lost
            if each.first <= last and each.last >= first
        ]
        if lost:
            self._lost = deque(_without(self._lost, first, last), _LOST_KEPT)
        return lost

    def renew(self, until: float, now: float) -> None:
        """Renews the locks that end until a time, and haven't yet."""
        due = [
            OffsetSpan(first, last)
            for first, last, deadline in zip(self._firsts, self._lasts, self._deadlines, strict=True)
            if now < deadline <= until
        ]
        asked = {(each.first, each.last) for each in self._outstanding() if each.renews}
        self._note([each for each in due if each not in asked], AcknowledgeType.RENEW, now)

    def _note(self, spans: Iterable[OffsetSpan], kind: int, now: float) -> None:
        for span in spans:
            if kind != AcknowledgeType.RENEW:
                self._cut(*span)
            if self.pending_since is None:
                self.pending_since = now
            previous = self._pending[-1] if self._pending else None
            if previous is not None and previous.type == kind and previous.last + 1 == span.first:
                self._pending[-1] = Acknowledgement(previous.first, span.last, kind)
            else:
                self._pending.append(Acknowledgement(*span, kind))

    # Sending.

    @property
    def in_flight(self) -> bool:
        """Whether an answer is awaited."""
        return self._in_flight is not None

    @property
    def in_flight_since(self) -> float | None:
        """When what is in flight was sent for the first time; None if nothing is."""
        return None if self._in_flight is None else self._in_flight.since

    @property
    def sendable(self) -> bool:
        """Whether there is something to send, and no answer is awaited."""
        return self._in_flight is None and bool(self._pending or self._again)

    @property
    def must_send(self) -> bool:
        """Whether something was sent before, and has to be sent again."""
        return self._in_flight is None and bool(self._again)

    @property
    def renewing(self) -> bool:
        """Whether a renewal is to be sent."""
        return any(each.renews for each in self._pending) or any(
            each.renews for batch in self._again for each in batch.ranges
        )

    def take(self, now: float) -> Sequence[Acknowledgement]:
        """Returns what to send now; it's in flight until `succeeded`, `failed` or `lose`."""
        assert self._in_flight is None, "one request at a time"
        if self._again:
            self._in_flight = self._again.popleft()
        elif self._pending:
            self._taken += 1
            self._in_flight = _Batch(self._taken, tuple(merged(self._pending)), now)
            self._pending.clear()
            self.pending_since = None
        return () if self._in_flight is None else self._in_flight.ranges

    def ticket(self) -> int:
        """Returns a number for `settled`: what was acknowledged so far."""
        return self._taken + 1 if self._pending else self._taken

    def settled(self, ticket: int) -> bool:
        """Whether all that was acknowledged before the ticket is settled."""
        waiting = [batch.number for batch in self._again]
        if self._in_flight is not None:
            waiting.append(self._in_flight.number)
        if self._pending:
            waiting.append(self._taken + 1)
        return min(waiting, default=ticket + 1) > ticket

    # Answers. Each returns what is settled by it.

    def succeeded(self, deadline: float) -> Sequence[Acknowledgement]:
        """The broker has taken what was in flight; renewed locks end at `deadline`."""
        batch, self._in_flight = self._in_flight, None
        if batch is None:
            return ()
        for each in batch.ranges:
            if each.renews:
                for at in range(self._index(each.first), len(self._firsts)):
                    if self._firsts[at] > each.last:
                        break
                    self._deadlines[at] = deadline
        return [each for each in batch.ranges if each.type != GAP]

    def retry(self) -> None:
        """What was in flight wasn't taken, and is sent again."""
        batch, self._in_flight = self._in_flight, None
        if batch is not None:
            self._again.append(batch)

    def failed(self, *, divide: bool = False, keeps_locks: bool = False) -> Sequence[Acknowledgement]:
        """The broker has taken nothing of what was in flight, and won't.

        Args:
            divide: it may take some of the ranges without the others.
            keeps_locks: locks that it doesn't renew go on until they end.
        """
        batch, self._in_flight = self._in_flight, None
        if batch is None:
            return ()
        if divide and len(batch.ranges) > 1:
            half = len(batch.ranges) // 2
            self._again.append(batch._replace(ranges=batch.ranges[:half]))
            self._again.append(batch._replace(ranges=batch.ranges[half:]))
            return ()
        for each in batch.ranges:
            if each.renews and not keeps_locks:
                self._lose(self.held(each.first, each.last))
        return [each for each in batch.ranges if each.type != GAP]

    def lose(self) -> Sequence[Acknowledgement]:
        """All locks are gone, and with them what wasn't answered."""
        unanswered = [each for each in self._outstanding() if each.type != GAP]
        self._in_flight = None
        self._again.clear()
        self._pending.clear()
        self.pending_since = None
        self._lose(self.held())
        return unanswered

    def _outstanding(self) -> list[Acknowledgement]:
        batches = (() if self._in_flight is None else (self._in_flight,)) + tuple(self._again)
        return [each for batch in batches for each in batch.ranges] + self._pending

    def _lose(self, spans: Iterable[OffsetSpan]) -> None:
        for span in spans:
            self._cut(*span)
            self._lost.append(span)

    def _index(self, offset: int) -> int:
        """Returns the index of the first held range that ends at an offset or later."""
        return bisect_left(self._lasts, offset)

    def _cut(self, first: int, last: int) -> None:
        """Takes offsets out of the held ranges; at most two of these are cut in parts."""
        begin, end = self._index(first), bisect_right(self._firsts, last)
        if begin >= end:
            return
        if begin + 1 == end and first <= self._firsts[begin] and last < self._lasts[begin]:  # its beginning
            self._firsts[begin] = last + 1
            return
        kept = [(*span, self._deadlines[begin if span.first < first else end - 1]) for span in (
            OffsetSpan(self._firsts[begin], first - 1), OffsetSpan(last + 1, self._lasts[end - 1])
        ) if span.first <= span.last]  # fmt: skip
        self._firsts[begin:end] = [each[0] for each in kept]
        self._lasts[begin:end] = [each[1] for each in kept]
        self._deadlines[begin:end] = [each[2] for each in kept]


def merged(acknowledgements: Iterable[Acknowledgement]) -> list[Acknowledgement]:
    """Returns acknowledgements in order, neighbours of one type as one; no renewal of what is final.

    Takes time in proportion to n log n.
    """
    given = sorted(acknowledgements)
    final = _joined(each for each in given if not each.renews)
    firsts, lasts = [each.first for each in final], [each.last for each in final]
    renewals = []
    for each in _joined(each for each in given if each.renews):
        covered = final[bisect_left(lasts, each.first) : bisect_right(firsts, each.last)]
        left = _complement([OffsetSpan(other.first, other.last) for other in covered], each.first, each.last)
        renewals += [Acknowledgement(*span, each.type) for span in left]
    return sorted(final + renewals)


def _joined(ranges: Iterable[Acknowledgement]) -> list[Acknowledgement]:
    """Returns sorted ranges with neighbours of one type as one."""
    found: list[Acknowledgement] = []
    for each in ranges:
        if found and found[-1].type == each.type and found[-1].last + 1 >= each.first:
            found[-1] = Acknowledgement(found[-1].first, max(found[-1].last, each.last), each.type)
        else:
            found.append(each)
    return found


def _complement(spans: Iterable[OffsetSpan], first: int, last: int) -> Iterable[OffsetSpan]:
    """Returns what of the offsets isn't in spans, which are sorted."""
    for span in spans:
        if first < span.first:
            yield OffsetSpan(first, span.first - 1)
        first = span.last + 1
    if first <= last:
        yield OffsetSpan(first, last)


def _cut_out(ranges: Iterable[Acknowledgement], first: int, last: int) -> list[Acknowledgement]:
    return [Acknowledgement(*span, each.type) for each in ranges for span in _without([each], first, last)]


def _without(spans: Iterable[OffsetSpan | Acknowledgement], first: int, last: int) -> Iterable[OffsetSpan]:
    for span in spans:
        if span.first < first:
            yield OffsetSpan(span.first, min(span.last, first - 1))
        if span.last > last:
            yield OffsetSpan(max(span.first, last + 1), span.last)
