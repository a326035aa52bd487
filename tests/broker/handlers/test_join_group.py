"""JoinGroup: members of classic groups join."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import join


def test_the_first_member_leads_the_first_generation(ask: Ask) -> None:
    joined = join(ask)
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]


def test_since_version_4_a_member_joins_with_an_id_that_it_was_given(ask: Ask) -> None:
    first = join(ask, version=9)
    assert (first.error_code, first.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    assert join(ask, version=9, member_id=first.member_id).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_joins_that_are_refused(fields: dict[str, object], code: ErrorCode, ask: Ask) -> None:
    assert join(ask, **fields).error_code == code


def test_a_member_must_be_allowed_to_read_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.READ, ResourceType.GROUP, "g")
    assert join(ask).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_a_coordinator_that_is_loading_refuses_with_the_protocol_name_of_the_version(
    version: int, name: str | None, ask: Ask, broker: Broker
) -> None:
    broker.groups.start()
    for entry in broker.groups._entries:
        entry.state = ShardState.LOADING
    refused = join(ask, version=version)
    assert (refused.error_code, refused.protocol_name) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, name)
