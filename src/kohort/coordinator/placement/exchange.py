"""Making a pattern fair by handing extras from those with many to those with few."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from kohort.coordinator.placement.pattern import Pattern

__all__ = ["level"]

_Offer = tuple[int, int, int, int, int]  # the loss, what the giver ranks by, its bin, the giver, the subtopology


def level(
    pattern: Pattern,
    extras: Sequence[dict[int, int]],
    bins: Sequence[Sequence[int]],
    counts: list[int],
    low: Sequence[int],
    high: Sequence[int],
) -> None:
    """Hand extras from bin to bin, the cheapest first, until the count of each is within its bounds.

    Whoever has more extras than another has one that the other lacks, so handing over is always possible, and
    no chain of swaps is needed. First from bins above their bounds to those below; then to those still below from
    whoever can spare one; then from those still above to whoever has room.

    Args:
        pattern: whose extras they are; it is changed.
        extras: those that may be handed over, by member.
        bins: members that are counted together; bins are disjoint.
        counts: the count of each bin, of whatever is bounded; it is changed.
        low, high: bounds of the counts, both inclusive. They can be met: sums of the bounds enclose the sum of counts.
    """
    places = range(len(bins))
    short = [place for place in places if counts[place] < low[place]]
    long = [place for place in places if counts[place] > high[place]]
    if short and long:
        _hand_over(pattern, extras, bins, counts, long, high, short, low)
        short = [place for place in short if counts[place] < low[place]]
        long = [place for place in long if counts[place] > high[place]]
    if short:
        able = [place for place in places if counts[place] > low[place]]
        _hand_over(pattern, extras, bins, counts, able, low, short, low)
    if long:
        room = sorted(
            (place for place in places if counts[place] < high[place]), key=lambda place: (counts[place], place)
        )
        _hand_over(pattern, extras, bins, counts, long, high, room, high)


def _hand_over(
    pattern: Pattern,
    extras: Sequence[dict[int, int]],
    bins: Sequence[Sequence[int]],
    counts: list[int],
    givers: Sequence[int],
    least: Sequence[int],
    takers: Sequence[int],
    most: Sequence[int],
) -> None:
    """Givers go down to the least count each, takers up to the most, as far as there are both.

    Of equally cheap extras, those of members with most go first. Where a bin's member with the fewest extras has
    such a one already, another would get it, and would have to hand on one of its own: that costs a move.
    """
    offers = [
        (loss, -len(extras[member]), giver, member, subtopology)
        for giver in givers
        for member in bins[giver]
        for subtopology, loss in extras[member].items()
    ]
    heapify(offers)
    for taker in takers:
        passed: list[_Offer] = []  # not, or not yet, for this taker
        dearer: list[_Offer] = []
        while counts[taker] < most[taker] and (offers or dearer):
            first = not dearer or (bool(offers) and offers[0] < dearer[0])
            offer = heappop(offers if first else dearer)
            loss, had, giver, member, subtopology = offer
            if counts[giver] <= least[giver]:
                continue
            if had != -len(extras[member]):  # somebody gave in the meantime
                heappush(offers if first else dearer, (loss, -len(extras[member]), giver, member, subtopology))
                continue
            lacking = [each for each in bins[taker] if subtopology not in extras[each]]
            if not lacking:
                passed.append(offer)
                continue
            target = min(lacking, key=lambda each: (len(extras[each]), each))
            if first and len(extras[target]) > min(len(extras[each]) for each in bins[taker]):
                heappush(dearer, (loss + 1, *offer[1:]))
                continue
            pattern.move(member, target, subtopology)
            counts[giver] -= 1
            counts[taker] += 1
        for offer in passed:
            heappush(offers, offer)
        for offer in dearer:
            heappush(offers, (offer[0] - 1, *offer[1:]))
