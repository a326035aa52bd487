"""`Admin.quotas` against a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kohort.client.admin import DEFAULT, Admin, QuotaEntity
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.testing.broker import Broker
from tests.waiting import run

ALICE = QuotaEntity(user="alice")
ALICES_APP = QuotaEntity(user="alice", client_id="app")
OTHERS = QuotaEntity(user=DEFAULT)
ADDRESS = QuotaEntity(ip="10.0.0.7")


def against_a_broker(test: Callable[[Admin], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Broker() as broker, Admin(broker.bootstrap_servers, default_api_timeout_ms=10_000) as admin:
            await test(admin)

    run(whole())


def test_quotas_are_set_described_and_removed() -> None:
    async def test(admin: Admin) -> None:
        quotas = admin.quotas
        await quotas.set(OTHERS, {"consumer_byte_rate": 5000})
        await quotas.set(ALICE, {"producer_byte_rate": 1000, "request_percentage": 12.5})
        await quotas.set(ALICES_APP, {"producer_byte_rate": 500})
        await quotas.set(ADDRESS, {"connection_creation_rate": 10})
        await quotas.set(ALICE, {"producer_byte_rate": 2000})
        assert list((await quotas.describe()).items()) == [
            (ALICES_APP, {"producer_byte_rate": 500.0}),
            (ALICE, {"producer_byte_rate": 2000.0, "request_percentage": 12.5}),
            (OTHERS, {"consumer_byte_rate": 5000.0}),
            (ADDRESS, {"connection_creation_rate": 10.0}),
        ]
        assert set(await quotas.describe(ALICE)) == {ALICE, ALICES_APP}
        assert set(await quotas.describe(ALICE, exactly=True)) == {ALICE}
        assert set(await quotas.describe(OTHERS)) == {OTHERS}
        assert await quotas.remove(ALICE, "producer_byte_rate", "consumer_byte_rate") == {"producer_byte_rate": 2000.0}
        assert await quotas.remove(ALICE) == {"request_percentage": 12.5}
        assert await quotas.remove(ALICE) == {}
        assert set(await quotas.describe()) == {ALICES_APP, OTHERS, ADDRESS}

    against_a_broker(test)


def test_what_is_only_checked_changes_nothing() -> None:
    async def test(admin: Admin) -> None:
        await admin.quotas.set(ALICE, {"producer_byte_rate": 1}, validate_only=True)
        assert await admin.quotas.describe() == {}

    against_a_broker(test)


@pytest.mark.parametrize(
    ("entity", "quotas"),
    [
        (ALICE, {"producer_bite_rate": 1}),
        (ALICE, {"producer_byte_rate": -1}),
        (ADDRESS, {"producer_byte_rate": 1}),
        (QuotaEntity(user="alice", ip="10.0.0.7"), {"producer_byte_rate": 1}),
        (QuotaEntity(), {"producer_byte_rate": 1}),
    ],
)
def test_quotas_that_can_not_be(entity: QuotaEntity, quotas: dict[str, float]) -> None:
    async def test(admin: Admin) -> None:
        with pytest.raises(KafkaError) as raised:
            await admin.quotas.set(entity, quotas)
        assert raised.value.code is ErrorCode.INVALID_REQUEST
        assert await admin.quotas.describe() == {}

    against_a_broker(test)
