"""`Admin.users` against a broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kohort.client import ClientConfig
from kohort.client.admin import Admin, PartialFailureError, ScramCredential
from kohort.client.errors import AuthenticationError
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.testing.broker import Broker
from tests.waiting import run

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": 1,
}


def against_a_broker(test: Callable[[Admin, Broker], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with Broker(LISTENERS) as broker, Admin(broker.bootstrap_servers, default_api_timeout_ms=10_000) as admin:
            await test(admin, broker)

    run(whole())


async def log_in(broker: Broker, name: str, password: str, mechanism: str) -> None:
    port = broker.server.listeners[1].port
    settings = ClientConfig(
        bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism,
        sasl_username=name, sasl_password=password,
    )  # fmt: skip
    async with Admin(settings) as admin:
        assert not await admin.topics.list()


def test_who_has_a_password_gets_in() -> None:
    async def test(admin: Admin, broker: Broker) -> None:
        assert await admin.users.describe() == {}
        await admin.users.set("alice, =1", "secret", iterations=4096)
        await admin.users.set("bob", "other", mechanism="SCRAM-SHA-256", iterations=4096)
        await admin.users.set("bob", "third", iterations=5000)
        assert await admin.users.describe() == {
            "alice, =1": [ScramCredential("SCRAM-SHA-512", 4096)],
            "bob": [ScramCredential("SCRAM-SHA-256", 4096), ScramCredential("SCRAM-SHA-512", 5000)],
        }
        await log_in(broker, "alice, =1", "secret", "SCRAM-SHA-512")
        await log_in(broker, "bob", "other", "SCRAM-SHA-256")
        await log_in(broker, "bob", "third", "SCRAM-SHA-512")
        for name, password, mechanism in (
            ("bob", "other", "SCRAM-SHA-512"),
            ("alice, =1", "secret", "SCRAM-SHA-256"),
            ("nobody", "secret", "SCRAM-SHA-512"),
        ):
            with pytest.raises(AuthenticationError):
                await log_in(broker, name, password, mechanism)
        await admin.users.delete("bob", "SCRAM-SHA-256")
        with pytest.raises(AuthenticationError):
            await log_in(broker, "bob", "other", "SCRAM-SHA-256")
        assert await admin.users.describe("bob") == {"bob": [ScramCredential("SCRAM-SHA-512", 5000)]}

    against_a_broker(test)


def test_what_can_not_be() -> None:
    async def test(admin: Admin, broker: Broker) -> None:
        with pytest.raises(KafkaError) as failed:
            await admin.users.describe("nobody")
        assert failed.value.code is ErrorCode.RESOURCE_NOT_FOUND
        await admin.users.set("alice", "secret")
        with pytest.raises(PartialFailureError) as partial:
            await admin.users.describe("nobody", "alice")
        assert list(partial.value.errors) == ["nobody"]
        with pytest.raises(KafkaError) as failed:
            await admin.users.set("alice", "secret", iterations=1)
        assert failed.value.code is ErrorCode.UNACCEPTABLE_CREDENTIAL
        with pytest.raises(KafkaError) as failed:
            await admin.users.delete("alice", "SCRAM-SHA-256")
        assert failed.value.code is ErrorCode.RESOURCE_NOT_FOUND
        for work in (admin.users.set("a", "b", mechanism="PLAIN"), admin.users.delete("a", "PLAIN")):
            with pytest.raises(ValueError, match="one of SCRAM-SHA-256, SCRAM-SHA-512 is needed"):
                await work

    against_a_broker(test)
