"""InitProducerId: producer ids and epochs."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.transactions import init


def test_idempotent_producers_have_ids_of_their_own(ask: Ask) -> None:
    first, second = init(ask, None), init(ask, None)
    assert (first.error_code, first.producer_epoch, second.producer_epoch) == (ErrorCode.NONE, 0, 0)
    assert second.producer_id == first.producer_id + 1


def test_a_transactional_producer_keeps_its_id_and_gets_the_next_epoch(ask: Ask) -> None:
    first, second = init(ask), init(ask)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, first.producer_epoch + 1)


@pytest.mark.parametrize(
    ("transactional_id", "fields", "code"),
    [
        (None, {"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ("", {}, ErrorCode.INVALID_REQUEST),
        ("t", {"transaction_timeout_ms": 2**31 - 1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", {"transaction_timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_requests_that_are_refused(
    transactional_id: str | None, fields: dict[str, int], code: ErrorCode, ask: Ask
) -> None:
    refused = init(ask, transactional_id, **fields)
    assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (code, -1, -1)


def test_who_may_not_write_with_the_transactional_id(ask: Ask, deny: Deny) -> None:
    deny(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "t")
    assert init(ask).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_an_idempotent_producer_must_be_allowed_to_write_some_topic(ask: Ask, broker: Broker, deny: Deny) -> None:
    deny(Operation.IDEMPOTENT_WRITE)
    refused = init(ask, None)
    broker.topics.create("there", 1)
    assert (refused.error_code, init(ask, None).error_code) == (
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.NONE,
    )
