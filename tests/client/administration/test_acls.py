"""`Admin.acls` against a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kohort.client.admin import (
    Acl,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    Admin,
    PartialFailureError,
)
from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.testing.broker import Broker
from tests.waiting import run

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
READS = Acl(AclResource.TOPIC, "orders", "User:alice", AclOperation.READ)
WRITES = Acl(AclResource.TOPIC, "ord", "User:alice", AclOperation.WRITE, pattern=AclPattern.PREFIXED, host="10.0.0.7")
DENIED = Acl(AclResource.GROUP, "*", "User:bob", AclOperation.ALL, AclPermission.DENY)


def against_a_broker(test: Callable[[Admin], Awaitable[None]], settings: dict[str, str]) -> None:
    async def whole() -> None:
        async with Broker(settings) as broker, Admin(broker.bootstrap_servers, default_api_timeout_ms=10_000) as admin:
            await test(admin)

    run(whole())


def test_rules_come_and_go() -> None:
    async def test(admin: Admin) -> None:
        await admin.acls.create(READS, WRITES, DENIED, READS)
        assert set(await admin.acls.describe()) == {READS, WRITES, DENIED}
        wanted = AclFilter(AclResource.TOPIC, "orders", pattern=AclPattern.MATCH)
        assert set(await admin.acls.describe(wanted)) == {READS, WRITES}
        exact = AclFilter(AclResource.TOPIC, "orders", pattern=AclPattern.LITERAL)
        assert await admin.acls.delete(exact, AclFilter(permission=AclPermission.DENY)) == [READS, DENIED]
        assert await admin.acls.describe() == [WRITES]

    against_a_broker(test, AUTHORIZED)


def test_a_rule_that_can_not_be_keeps_no_other_from_it() -> None:
    async def test(admin: Admin) -> None:
        bad = READS._replace(principal="alice")
        with pytest.raises(PartialFailureError) as failed:
            await admin.acls.create(bad, READS)
        assert list(failed.value.errors) == [bad]
        with pytest.raises(KafkaError) as alone:
            await admin.acls.create(bad)
        assert alone.value.code is ErrorCode.INVALID_REQUEST
        assert await admin.acls.describe() == [READS]

    against_a_broker(test, AUTHORIZED)


def test_without_an_authorizer() -> None:
    async def test(admin: Admin) -> None:
        for work in (admin.acls.describe(), admin.acls.create(READS), admin.acls.delete(AclFilter())):
            with pytest.raises(KafkaError) as failed:
                await work
            assert failed.value.code is ErrorCode.SECURITY_DISABLED

    against_a_broker(test, {})


@pytest.mark.parametrize(
    ("clients", "brokers"),
    [
        (AclResource, ResourceType),
        (AclPattern, PatternType),
        (AclOperation, Operation),
        (AclPermission, Permission),
    ],
)
def test_client_and_broker_have_the_same_numbers(clients: type, brokers: type) -> None:
    assert {name: int(each) for name, each in clients.__members__.items()} == {  # type: ignore[attr-defined]
        name: int(each)
        for name, each in brokers.__members__.items()  # type: ignore[attr-defined]
    }
