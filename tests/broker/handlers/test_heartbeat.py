"""Heartbeat: a member of a classic group is alive."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import stable_member


def heartbeat(ask: Ask, member_id: str, generation: int = 1) -> int:
    code = ask(HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)).error_code
    assert isinstance(code, int)
    return code


def test_a_member_is_alive(ask: Ask) -> None:
    assert heartbeat(ask, stable_member(ask)) == ErrorCode.NONE


def test_heartbeats_that_are_refused(ask: Ask) -> None:
    member_id = stable_member(ask)
    assert heartbeat(ask, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert heartbeat(ask, member_id, generation=2) == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("state", "code"),
    [(ShardState.LOADING, ErrorCode.NONE), (ShardState.FAILED, ErrorCode.COORDINATOR_NOT_AVAILABLE)],
)
def test_a_coordinator_that_is_not_active(state: ShardState, code: ErrorCode, ask: Ask, broker: Broker) -> None:
    broker.groups.start()
    for entry in broker.groups._entries:
        entry.state = state
    assert heartbeat(ask, "m") == code


def test_a_member_must_be_allowed_to_read_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.READ, ResourceType.GROUP, "g")
    assert heartbeat(ask, "m") == ErrorCode.GROUP_AUTHORIZATION_FAILED
