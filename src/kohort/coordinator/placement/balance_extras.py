"""Balancing extra tasks, by moving them from members or processes with many to those with few."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from kohort.coordinator.placement.extra_tasks import ExtraTasks
from kohort.coordinator.placement.tie_breaking import fewest_extra_tasks

_Offer = tuple[int, int, int, int, int]  # the loss, what the giver ranks by, its bin, the giver, the subtopology


def balance_extras(
    extra_tasks: ExtraTasks,
    extras: Sequence[dict[int, int]],
    bins: Sequence[Sequence[int]],
    counts: list[int],
    low: Sequence[int],
    high: Sequence[int],
) -> None:
    """Moves extra tasks from bin to bin, the cheapest first, until the count of each is within its bounds.

    A bin with more extra tasks than another has one that the other lacks, so a move is always possible, and no chain of
    swaps is needed. First from bins above their bounds to those below; then to those still below from bins that can
    spare one; then from those still above to bins that have room.

    Args:
        extra_tasks: is changed.
        extras: those that may be moved, by member.
        bins: members that are counted together; bins are disjoint.
        counts: the count of each bin, of what is bounded; is changed.
        low, high: bounds of the counts, both inclusive. They can be met: sums of the bounds enclose the sum of counts.
    """
    places = range(len(bins))
    short = [place for place in places if counts[place] < low[place]]
    long = [place for place in places if counts[place] > high[place]]
    if short and long:
        _move(extra_tasks, extras, bins, counts, long, high, short, low)
        short = [place for place in short if counts[place] < low[place]]
        long = [place for place in long if counts[place] > high[place]]
    if short:
        able = [place for place in places if counts[place] > low[place]]
        _move(extra_tasks, extras, bins, counts, able, low, short, low)
    if long:
        room = sorted(
            (place for place in places if counts[place] < high[place]), key=lambda place: (counts[place], place)
        )
        _move(extra_tasks, extras, bins, counts, long, high, room, high)


def _move(
    extra_tasks: ExtraTasks,
    extras: Sequence[dict[int, int]],
    bins: Sequence[Sequence[int]],
    counts: list[int],
    givers: Sequence[int],
    least: Sequence[int],
    takers: Sequence[int],
    most: Sequence[int],
) -> None:
    """Givers go down to the least count each, takers up to the most, as far as there are both.

    Of equally cheap extra tasks, those of members with most go first. Where a bin's member with the fewest has one of
    the subtopology already, another member would get it, and would have to move on one of its own: that costs a move.
    """
    offers = [
        (loss, -len(extras[member]), giver, member, subtopology)
        for giver in givers
        for member in bins[giver]
        for subtopology, loss in extras[member].items()
    ]
    heapify(offers)
    for taker in takers:
        passed: list[_Offer] = []  # not for this taker, or not yet
        dearer: list[_Offer] = []
        while counts[taker] < most[taker] and (offers or dearer):
            first = not dearer or (bool(offers) and offers[0] < dearer[0])
            offer = heappop(offers if first else dearer)
            loss, had, giver, member, subtopology = offer
            if counts[giver] <= least[giver]:
                continue
            if had != -len(extras[member]):  # the member gave one away in the meantime
                heappush(offers if first else dearer, (loss, -len(extras[member]), giver, member, subtopology))
                continue
            lacking = [each for each in bins[taker] if subtopology not in extras[each]]
            if not lacking:
                passed.append(offer)
                continue
            target = min(lacking, key=fewest_extra_tasks(extras))
            if first and len(extras[target]) > min(len(extras[each]) for each in bins[taker]):
                heappush(dearer, (loss + 1, *offer[1:]))
                continue
            extra_tasks.move(member, target, subtopology)
            counts[giver] -= 1
            counts[taker] += 1
        for offer in passed:
            heappush(offers, offer)
        for offer in dearer:
            heappush(offers, (offer[0] - 1, *offer[1:]))
