from __future__ import annotations

import itertools

import pytest

from kohort.security.quotas import kept
from kohort.security.quotas.limits import Entity, Limit, Limits
from kohort.security.quotas.throttle import Throttle

ORDER: list[tuple[Entity, tuple[str | None, str | None]]] = [
    (frozenset({("user", "alice"), ("client-id", "app")}), ("alice", "app")),
    (frozenset({("user", "alice"), ("client-id", None)}), ("alice", "app")),
    (frozenset({("user", "alice")}), ("alice", None)),
    (frozenset({("user", None), ("client-id", "app")}), ("alice", "app")),
    (frozenset({("user", None), ("client-id", None)}), ("alice", "app")),
    (frozenset({("user", None)}), ("alice", None)),
    (frozenset({("client-id", "app")}), (None, "app")),
    (frozenset({("client-id", None)}), (None, "app")),
]
"""From the most special one, with those who share it."""


def test_the_most_special_quota_counts() -> None:
    for first, second in itertools.combinations(range(len(ORDER)), 2):
        limits = Limits({ORDER[second][0]: 2.0, ORDER[first][0]: 1.0})
        assert limits.of("alice", "app") == Limit(ORDER[first][1], 1.0)
    for entity, key in ORDER:
        assert Limits({entity: 5.0}).of("alice", "app") == Limit(key, 5.0)


def test_others_have_none() -> None:
    limits = Limits({ORDER[0][0]: 1.0})
    assert limits.of("alice", "other") is None
    assert limits.of("bob", "app") is None
    assert not Limits({})


def test_who_shares_a_quota_waits_for_what_the_others_did() -> None:
    throttled = Throttle(Limits({frozenset({("user", None)}): 100.0}), 11, 1000)
    assert throttled.record("alice", "one", 1000, 0) == 0
    assert throttled.record("bob", "one", 1000, 0) == 0
    assert throttled.record("alice", "two", 1000, 0) == 10_000
    throttled.limits = Limits({frozenset({("user", "bob")}): 10.0})
    assert throttled.record("alice", "two", 1000, 0) == 0
    assert throttled.record("bob", "one", 0, 0) > 0


def test_a_client_without_an_id_has_the_quotas_of_its_user_alone() -> None:
    assert Limits({frozenset({("client-id", None)}): 1.0}).of("alice", "") is None
    assert Limits({frozenset({("user", None), ("client-id", None)}): 1.0}).of("alice", "") is None
    every = Limits({entity: float(number) for number, (entity, _) in enumerate(ORDER)})
    assert every.of("alice", "") == Limit(("alice", None), 2.0)


def test_very_long_client_ids_are_not_kept() -> None:
    limits = Limits({frozenset({("client-id", None)}): 1.0, frozenset({("client-id", "x" * 500)}): 2.0})
    one, other = limits.of("alice", "x" * 500), limits.of("alice", "x" * 501)
    assert one is not None
    assert other is not None
    assert (one.bound, other.bound) == (2.0, 1.0)
    assert one.key != other.key
    assert len(str(one.key)) < 100


def test_rates_of_very_many_clients_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    throttled = Throttle(Limits({frozenset({("client-id", None)}): 1.0}), 11, 1000)
    for number in range(10):
        throttled.record("alice", f"client-{number}", 1, 0)
        assert throttled.record("alice", "client-0", 5, 0) > 0 or number == 0  # it is in use
        assert len(throttled._rates) <= 3


def test_who_is_idle_is_forgotten() -> None:
    throttled = Throttle(Limits({frozenset({("client-id", None)}): 1.0}), 11, 1000)
    for number in range(100):
        throttled.record("alice", f"client-{number}", 1, 0)
    throttled.record("alice", "client-99", 1, 10_000)
    throttled.record("alice", "new", 1, 11_000)
    assert len(throttled._rates) == 2


def test_what_is_taken_back_does_not_count() -> None:
    throttled = Throttle(Limits({frozenset({("user", None)}): 100.0}), 11, 1000)
    assert throttled.record("alice", "", 600, 0, take_back=True) == 0
    assert throttled.record("alice", "", 600, 0, take_back=True) == 2000
    assert throttled.record("alice", "", 400, 0, take_back=True) == 0
