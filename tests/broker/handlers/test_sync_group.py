"""SyncGroup: the leader brings the assignments, members get theirs."""

from __future__ import annotations

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sync_group import SyncGroupRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import join, sync


def test_a_member_gets_its_assignment(ask: Ask) -> None:
    response = sync(ask, join(ask).member_id, assignment=b"mine")
    assert (response.error_code, response.assignment) == (ErrorCode.NONE, b"mine")


def test_syncs_that_are_refused(ask: Ask) -> None:
    member_id = join(ask).member_id
    assert sync(ask, "nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert sync(ask, member_id, generation=9).error_code == ErrorCode.ILLEGAL_GENERATION


def test_since_version_5_the_protocol_is_named(ask: Ask) -> None:
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id="m")
    assert ask(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_while_the_coordinator_is_loading_the_member_joins_again(ask: Ask, broker: Broker) -> None:
    broker.groups.start()
    for entry in broker.groups._entries:
        entry.state = ShardState.LOADING
    assert sync(ask, "m").error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_must_be_allowed_to_read_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.READ, ResourceType.GROUP, "g")
    assert sync(ask, "m").error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
