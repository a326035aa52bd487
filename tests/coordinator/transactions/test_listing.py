"""ListTransactions and DescribeTransactions."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.transactions import TopicPartition, list_transactions
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_transactions import ListTransactionsRequest
from tests.coordinator.transactions.fakes import P0, P1, Coordinator


@pytest.fixture
def coordinator() -> Coordinator:
    """With "idle" (producer 101), and "open" (producer 102), whose transaction began 500 ms ago."""
    coordinator = Coordinator()
    coordinator.init("idle")
    coordinator.init("open")
    coordinator.add((102, 0), P1, P0, TopicPartition("a", 3), name="open")
    coordinator.now += 500
    return coordinator


def listed(coordinator: Coordinator, **filters: Any) -> list[str]:
    request = ListTransactionsRequest(**filters)
    response = list_transactions(coordinator.shard.transactions(), request, coordinator.now)
    assert response.error_code == 0
    return [entry.transactional_id for entry in response.transaction_states]


def test_all_are_listed(coordinator: Coordinator) -> None:
    response = list_transactions(coordinator.shard.transactions(), ListTransactionsRequest(), coordinator.now)
    assert [(e.transactional_id, e.producer_id, e.transaction_state) for e in response.transaction_states] == [
        ("idle", 101, "Empty"),
        ("open", 102, "Ongoing"),
    ]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"state_filters": ("Ongoing",)}, ["open"]),
        ({"state_filters": ("Ongoing", "Empty")}, ["idle", "open"]),
        ({"state_filters": ("Nonsense",)}, []),
        ({"producer_id_filters": (101, 7)}, ["idle"]),
        ({"producer_id_filters": (101,), "state_filters": ("Ongoing",)}, []),
        ({"state_filters": ("Ongoing",), "duration_filter": 499}, ["open"]),
        ({"state_filters": ("Ongoing",), "duration_filter": 500}, []),
        ({"transactional_id_pattern": "o.*"}, ["open"]),
        ({"transactional_id_pattern": "pe"}, []),
        ({"transactional_id_pattern": ""}, ["idle", "open"]),
        ({"transactional_id_pattern": "idle|open"}, ["idle", "open"]),
    ],
)
def test_filters(coordinator: Coordinator, filters: dict[str, Any], names: list[str]) -> None:
    assert listed(coordinator, **filters) == names


def test_unknown_states_are_named(coordinator: Coordinator) -> None:
    request = ListTransactionsRequest(state_filters=("Nonsense", "Ongoing"))
    assert list_transactions([], request, 0).unknown_state_filters == ("Nonsense",)


@pytest.mark.parametrize("pattern", ["(", "a)|(b", "(?=x)"])
def test_a_pattern_that_is_none(pattern: str) -> None:
    response = list_transactions([], ListTransactionsRequest(transactional_id_pattern=pattern), 0)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_description(coordinator: Coordinator) -> None:
    state = coordinator.shard.describe("open")
    assert (state.error_code, state.transactional_id, state.transaction_state) == (0, "open", "Ongoing")
    assert (state.transaction_timeout_ms, state.transaction_start_time_ms) == (5000, coordinator.now - 500)
    assert (state.producer_id, state.producer_epoch) == (102, 0)
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("a", (3,)), ("t", (0, 1))]


@pytest.mark.parametrize(
    ("name", "code"), [("other", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND), ("", ErrorCode.INVALID_REQUEST)]
)
def test_what_is_not_there_is_not_described(coordinator: Coordinator, name: str, code: ErrorCode) -> None:
    assert coordinator.shard.describe(name).error_code == code
