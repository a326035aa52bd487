"""Groups of members in virtual time, against Kohort's classic groups and a small coordinator of consumer groups."""

from __future__ import annotations

import pytest

from kohort.client.membership.member_states import State
from tests.client.membership.simulated import Classic, Modern, Simulation

KINDS = {
    "range": ("range",),
    "sticky": ("sticky",),
    "cooperative-sticky": ("cooperative-sticky",),
    "consumer": None,
}


def simulation(kind: str, seed: int, **settings: object) -> Simulation:
    strategy = KINDS[kind]
    if strategy is None:
        return Simulation(Modern(), seed, group_protocol="consumer", **settings)
    return Simulation(Classic(), seed, partition_assignment_strategy=strategy, heartbeat_interval_ms=500, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_members_come_and_go(kind: str) -> None:
    group = simulation(kind, 0)
    members = [group.add("a", "b") for _ in range(3)]
    group.run_until_stable()
    assert [len(member.has) for member in members] == [3, 3, 3]
    members[0].perform(members[0].machine.leave(group.now))
    group.run_until_stable()
    assert members[0].machine.state is State.UNSUBSCRIBED and not members[0].has
    members[0].subscribe("a")
    group.run_until_stable()
    assert members[0].has


def test_what_stays_is_never_revoked() -> None:
    """Two phases (KIP-429): a cooperative member that loses one of nine goes on with the other eight."""
    group = simulation("cooperative-sticky", 1)
    first = group.add("a", "b")
    group.run_until_stable()
    kept = set(first.has)
    second = group.add("a", "b")
    while not group.stable():
        group.run(10)
        kept &= first.fetching
    assert kept == first.has and len(kept) in (4, 5) and len(second.has) == 9 - len(kept)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [*range(6), 39, 42])
def test_faults(kind: str, seed: int) -> None:
    """Channels break at any request, users are slow, subscriptions change; when that ends, all is well again."""
    group = simulation(kind, seed, max_poll_interval_ms=3_000)
    for _ in range(3):
        group.add("a", "b")
    group.faults = 0.1
    chance = group.random
    for _ in range(15):
        group.run(chance.randrange(0, 1_500, 10))
        member = chance.choice(group.members)
        match chance.randrange(5):
            case 0:
                member.perform(member.machine.leave(group.now))
            case 1:
                member.subscribe(*chance.choice([("a",), ("b",), ("a", "b")]))
            case 2:
                member.slow_since = group.now if member.slow_since is None else None
            case 3:
                member.lose_channel()
            case 4 if len(group.members) < 6:
                group.add("a", "b")
    group.faults = 0.0
    for member in group.members:
        member.slow_since = None
        if member.machine.state is State.UNSUBSCRIBED:
            member.subscribe("a", "b")
    group.run_until_stable()
    for member in group.members:
        assert not member.errors
        member.perform(member.machine.leave(group.now))
    group.run(3_000)
    assert all(member.machine.state is State.UNSUBSCRIBED and not member.has for member in group.members)
