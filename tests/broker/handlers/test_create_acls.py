"""CreateAcls: rules count at once, and after a restart; those that can't be are refused, the others added."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from kohort.broker.access_rules import MAX_CHANGES
from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.log.slices import in_one_go
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_acls import CreateAclsRequest
from kohort.protocol.stored.cluster_metadata import AccessControlEntryRecord
from kohort.security.acls import Acl, AclFilter
from tests.broker.handlers.acls import ADMIN, AUTHORIZED, GROUPS, READS, WRITES, creation
from tests.broker.handlers.conftest import QUICK, Ask, Deny, asker

authorized = pytest.mark.parametrize("settings", [AUTHORIZED])
ALICE_READS = ("User:alice", "::1", Operation.READ, ResourceType.TOPIC, "orders")


def create(ask: Ask, *acls: Acl, principal: str = ADMIN) -> list[int]:
    request = CreateAclsRequest(creations=[creation(acl) for acl in acls])
    return [result.error_code for result in ask(request, principal=principal).results]


def rules(broker: Broker) -> list[Acl]:
    assert broker.access_rules is not None
    return in_one_go(broker.access_rules.matching(AclFilter()))


@authorized
def test_a_rule_counts_at_once(ask: Ask, broker: Broker) -> None:
    assert broker.authorizer is not None
    assert not broker.authorizer.allowed(*ALICE_READS)
    assert create(ask, READS, WRITES, READS) == [0, 0, 0]
    assert broker.authorizer.allowed(*ALICE_READS)
    assert rules(broker) == [READS, WRITES]


@authorized
def test_a_rule_that_is_there_is_not_written_again(ask: Ask, broker: Broker) -> None:
    create(ask, READS)
    end = broker.metadata_log.log.log_end_offset
    assert create(ask, READS) == [0]
    assert broker.metadata_log.log.log_end_offset == end


@authorized
def test_the_log_tells_of_new_rules_alone(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kohort.broker.admin")
    create(ask, READS, WRITES)
    create(ask, READS)
    create(ask, READS, GROUPS)
    added = [line for line in caplog.messages if line.startswith("access rules added")]
    assert added == [f"access rules added count={count} principal={ADMIN}" for count in (2, 1)]


@authorized
def test_what_can_not_be_keeps_nothing_else_from_it(ask: Ask, broker: Broker) -> None:
    bad = READS._replace(kind=ResourceType.CLUSTER, name="other")
    assert create(ask, bad, GROUPS, READS._replace(principal="alice")) == [
        ErrorCode.INVALID_REQUEST,
        0,
        ErrorCode.INVALID_REQUEST,
    ]
    assert rules(broker) == [GROUPS]
    unknown = CreateAclsRequest.Creation(resource_type=77, resource_name="x", principal="User:a", host="*")
    (result,) = ask(CreateAclsRequest(creations=[unknown]), principal=ADMIN).results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert "77" in result.error_message


@authorized
def test_too_many_at_once(ask: Ask, broker: Broker) -> None:
    many = [READS._replace(name=str(number)) for number in range(MAX_CHANGES + 1)]
    assert set(create(ask, *many)) == {ErrorCode.INVALID_REQUEST}
    assert rules(broker) == []


async def restarted(broker: Broker) -> None:
    await broker.start()
    await broker.stop()


def test_a_restart_keeps_them(tmp_path: Path) -> None:
    settings = Settings.of({**QUICK, **AUTHORIZED})
    first = Broker.build(settings, data_dir=tmp_path)
    create(asker(first), READS, WRITES, GROUPS)
    assert first.access_rules is not None
    first.access_rules.remove([WRITES])
    asyncio.run(first.stop())
    second = Broker.build(settings, data_dir=tmp_path)
    asyncio.run(restarted(second))
    assert rules(second) == [READS, GROUPS]
    assert second.authorizer is not None
    assert second.authorizer.allowed(*ALICE_READS)


@authorized
def test_a_stored_rule_that_is_not_understood_ends_the_start(broker: Broker) -> None:
    assert broker.access_rules is not None
    record = AccessControlEntryRecord(resource_type=2, resource_name="x", pattern_type=3, operation=99)
    with pytest.raises(OSError, match="isn't understood"):
        broker.access_rules.replay(record)


def test_without_an_authorizer(ask: Ask) -> None:
    results = ask(CreateAclsRequest(creations=[creation(READS)] * 2)).results
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert results[0].error_message == "No Authorizer is configured."


def test_who_may_not_alter_the_cluster(ask: Ask, deny: Deny) -> None:
    deny(Operation.ALTER)
    assert create(ask, READS) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


@authorized
def test_who_is_no_super_user_adds_nothing(ask: Ask, broker: Broker) -> None:
    assert create(ask, READS, principal="User:alice") == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert rules(broker) == []
