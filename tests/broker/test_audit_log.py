"""Each denial is a line of the logger kohort.authorizer; what clients didn't ask for isn't."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.broker.context import Context
from kohort.broker.handlers import init_producer_id
from kohort.broker.session import Session
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.handlers.conftest import Rules

DESCRIBE = Operation.DESCRIBE


def context(tmp_path: Path, *rules: tuple[Operation | None, ResourceType | None, str | None]) -> Context:
    broker = Broker.build(Settings(), data_dir=tmp_path, authorizer=Rules(*rules))
    broker.log_manager.close(broker.log_manager.logs(broker.topics))
    return Context(broker, 0, 0, "app", Session(host="10.0.0.7", principal="User:alice"), "Fetch")


@pytest.fixture
def audit(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="kohort.authorizer")
    return caplog


def test_a_denial_says_who_what_and_from_where(tmp_path: Path, audit: pytest.LogCaptureFixture) -> None:
    denied = context(tmp_path, (Operation.READ, None, None))
    assert not denied.allowed(Operation.READ, ResourceType.TOPIC, "orders")
    (record,) = audit.records
    assert (record.name, record.levelno) == ("kohort.authorizer", logging.INFO)
    message = record.getMessage()
    assert message.startswith("denied ")
    for part in ("User:alice", "host=10.0.0.7", "operation=READ", "TOPIC", "orders", "api=Fetch"):
        assert part in message


def test_what_is_allowed_is_said_at_debug(tmp_path: Path, audit: pytest.LogCaptureFixture) -> None:
    assert context(tmp_path).allowed(Operation.READ, ResourceType.TOPIC, "orders")
    (record,) = audit.records
    assert record.levelno == logging.DEBUG
    assert record.getMessage().startswith("allowed ")


def test_a_name_can_not_begin_another_line(tmp_path: Path, audit: pytest.LogCaptureFixture) -> None:
    context(tmp_path, (None, None, None)).allowed(
        Operation.READ, ResourceType.GROUP, "x\nallowed principal=" + "y" * 999
    )
    (record,) = audit.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 400


def test_what_was_not_asked_for_is_not_said(tmp_path: Path, audit: pytest.LogCaptureFixture) -> None:
    denied = context(tmp_path, (None, None, None))
    assert denied.cluster_operations() == 0
    assert denied.operations(ResourceType.TOPIC, "orders") == 0
    assert not denied.may_write_somewhere()
    assert not audit.records


def test_a_producer_that_may_write_nowhere_is_told_of(tmp_path: Path, audit: pytest.LogCaptureFixture) -> None:
    denied = context(tmp_path, (None, None, None))
    init_producer_id.handle(InitProducerIdRequest(transactional_id=None), denied)
    (record,) = audit.records
    assert "denied" in record.getMessage()
    assert "operation=IDEMPOTENT_WRITE" in record.getMessage()
