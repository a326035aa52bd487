"""The rules that a share group has to keep, whatever its members are written in, from what each member tells.

Members tell, with the time: "received" (partition, offset, count: which delivery of the record it is), before they say
what becomes of it; "settled" (partition, offset, how: accepted, released or rejected) once the broker has answered that
it counts. A member that is killed, or whose acknowledgement fails, leaves open what became of a record.

A member may have records in hand that it doesn't know to be another's by now: it was given them before the broker
crashed, which takes all locks away. What it tells of those later isn't held against the broker.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

FINAL = ("accepted", "rejected")


class Delivery(NamedTuple):
    """A record as a member got it.

    Attributes:
        at: when, ns.
        member: its number.
        count: which delivery it is, says the broker.
    """

    at: int
    member: int
    count: int


class Settlement(NamedTuple):
    """The broker's answer that an acknowledgement counts."""

    at: int
    member: int
    how: str


@dataclass
class Story:
    """A record's: what members told of it, by time."""

    deliveries: list[Delivery] = field(default_factory=list)
    settlements: list[Settlement] = field(default_factory=list)

    def latest(self, settlement: Settlement) -> Delivery:
        """The delivery that was settled; AssertionError if there is none."""
        found = [each for each in self.deliveries if each.member == settlement.member and each.at <= settlement.at]
        assert found, f"settled but never received: {settlement}"
        return found[-1]


class Member(NamedTuple):
    """A member as it lived.

    Attributes:
        events: what it told.
        started, ended: when it was started, and told to leave or killed, ns; None: not before all was done.
    """

    events: Iterable[dict[str, object]]
    started: int
    ended: int | None


def judge(members: Sequence[Member], crashes: Sequence[int], ends: dict[int, int], limit: int) -> dict[str, int]:
    """AssertionError for what a broker must not do; how many records ended in which way otherwise.

    The broker must have nothing more to deliver.

    Args:
        crashes: when the broker was killed, ns.
        ends: records by partition.
        limit: most deliveries of a record.
    """
    stories = _stories(members)
    expected = {(partition, offset) for partition, end in ends.items() for offset in range(end)}
    unknown = sorted(stories.keys() - expected)
    assert not unknown, f"records that nobody wrote: {unknown[:5]}"
    outcomes: dict[str, int] = defaultdict(int)
    for where in sorted(expected):
        try:
            outcomes[_outcome(stories.get(where, Story()), members, crashes, limit)] += 1
        except AssertionError as error:
            raise AssertionError(f"partition {where[0]}, offset {where[1]}: {error}\n{stories.get(where)}") from None
    return dict(outcomes)


def _stories(members: Sequence[Member]) -> dict[tuple[int, int], Story]:
    stories: dict[tuple[int, int], Story] = defaultdict(Story)
    for number, member in enumerate(members):
        for event in member.events:
            if event["event"] == "received":
                at, partition, offset, count = (int(str(event[key])) for key in ("at", "partition", "offset", "count"))
                stories[partition, offset].deliveries.append(Delivery(at, number, count))
            elif event["event"] == "settled":
                at, partition, offset = (int(str(event[key])) for key in ("at", "partition", "offset"))
                stories[partition, offset].settlements.append(Settlement(at, number, str(event["how"])))
    for story in stories.values():
        story.deliveries.sort()
        story.settlements.sort()
    return stories


def _outcome(story: Story, members: Sequence[Member], crashes: Sequence[int], limit: int) -> str:
    """How a record ended, if all was as it has to be."""
    assert story.deliveries, "never delivered"
    for delivery in story.deliveries:
        assert 1 <= delivery.count <= limit, f"beyond the limit of {limit} deliveries: {delivery}"
    for before, after in zip(story.deliveries, story.deliveries[1:], strict=False):
        assert after.count > before.count or _forgotten(before, after, members, crashes), (
            f"{after} while {before} holds it"
        )
    final = [each for each in story.settlements if each.how in FINAL]
    assert len(final) <= 1, f"settled {len(final)} times"
    if final:
        settled = story.latest(final[0])
        for later in story.deliveries:
            stale = later.count <= settled.count and _in_hand(later, members, crashes)
            assert later.at <= settled.at or stale, f"delivered again after it was {final[0].how}: {later}"
        return final[0].how
    last = story.deliveries[-1]
    answered = [each for each in story.settlements if each.member == last.member and each.at >= last.at]
    if last.count == limit:
        return "archived"
    # Another delivery may have been to a member that never told of it, and be the last, or be settled.
    untold = any(settlement.at <= ended for settlement in answered[-1:] for ended in _ends(members, crashes))
    assert not answered or untold, f"released by {last}, and never delivered again"
    return "open"


def _ends(members: Sequence[Member], crashes: Sequence[int]) -> list[int]:
    """When members ended that may have had records in hand, and when all may have lost some."""
    return [*crashes, *(member.ended for member in members if member.ended is not None)]


def _forgotten(before: Delivery, after: Delivery, members: Sequence[Member], crashes: Sequence[int]) -> bool:
    """Whether a delivery may be counted as if the one before hadn't been: its member ended, or the broker crashed."""
    ended = members[before.member].ended
    crashed = any(before.at <= crash <= after.at for crash in crashes)
    return crashed or (ended is not None and ended <= after.at) or _in_hand(after, members, crashes)


def _in_hand(delivery: Delivery, members: Sequence[Member], crashes: Sequence[int]) -> bool:
    """Whether a member may have got a record before the broker's latest crash, and told of it only now."""
    earlier = crashes[: bisect(crashes, delivery.at)]
    return bool(earlier) and members[delivery.member].started < earlier[-1]
