"""ListTransactions: transactional ids by state, producer and name."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_transactions import ListTransactionsRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.transactions import add_partitions, init


def list_ids(ask: Ask, **filters: Any) -> set[str]:
    return {state.transactional_id for state in ask(ListTransactionsRequest(**filters)).transaction_states}


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, {"t", "other"}),
        ({"state_filters": ("Ongoing",)}, {"t"}),
        ({"state_filters": ("Empty",)}, {"other"}),
        ({"producer_id_filters": (999,)}, set()),
        ({"transactional_id_pattern": "oth.*"}, {"other"}),
    ],
)
def test_transactions_are_listed_by_state_producer_and_name(
    filters: dict[str, Any], ids: set[str], ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    init(ask, "other")
    add_partitions(ask, init(ask), ("there", 0))
    assert list_ids(ask, **filters) == ids


def test_filters_that_make_no_sense(ask: Ask) -> None:
    init(ask)
    assert ask(ListTransactionsRequest(state_filters=("Nonsense",))).unknown_state_filters == ("Nonsense",)
    refused = ask(ListTransactionsRequest(transactional_id_pattern="("))
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_ids_that_may_not_be_described_are_left_out(ask: Ask, deny: Deny) -> None:
    init(ask)
    init(ask, "other")
    deny(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "t")
    assert list_ids(ask) == {"other"}


def test_while_a_shard_is_loading_there_is_no_list(ask: Ask, broker: Broker) -> None:
    broker.transactions.start()
    broker.transactions._entries[0].state = ShardState.LOADING
    assert ask(ListTransactionsRequest()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
