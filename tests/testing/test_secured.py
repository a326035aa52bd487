"""Secured brokers for tests, in this process and in one of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from kohort.client import Admin
from kohort.client.admin import Acl, AclOperation, AclResource
from kohort.client.errors import AuthenticationError, ConnectionLostError
from kohort.testing import Broker, BrokerProcess, Filling, Login, Security

from ..waiting import run


def topics(login: Login) -> list[str]:
    async def ask() -> list[str]:
        async with Admin(login.config) as admin:
            return sorted(await admin.topics.list())

    return run(ask())


def produce(login: Login, topic: str) -> KafkaError | None:
    """What became of one record."""
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        errors.append(error)

    producer = Producer(login.librdkafka)
    producer.produce(topic, b"hello", on_delivery=delivered)
    assert producer.flush(20) == 0
    return errors[0]


def test_only_users_get_in_and_do_what_they_may() -> None:
    with Broker(secure=True) as broker:
        admin, alice = broker.security.admin, broker.security.add_user("alice")
        assert produce(admin, "orders") is None
        assert topics(alice) == []
        denied = produce(alice, "orders")
        assert denied is not None
        assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        broker.security.add_acls(Acl(AclResource.TOPIC, "orders", alice.principal, AclOperation.WRITE))
        assert produce(alice, "orders") is None
        assert topics(alice) == ["orders"]
        broker.security.delete_user("alice")
        with pytest.raises(AuthenticationError):
            topics(alice)
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=1)


def test_in_the_broker_s_own_event_loop_a_call_says_how_it_is_made() -> None:
    async def main() -> None:
        async with Broker(secure=True) as broker:
            with pytest.raises(RuntimeError, match=r"await asyncio.to_thread\(broker.security.add_user, …\)"):
                broker.security.add_user("alice")
            with pytest.raises(RuntimeError, match=r"await asyncio.to_thread\(filling.topic, …\)"):
                Filling(broker, "x").topic([b"tea"])
            with pytest.raises(RuntimeError, match=r"await asyncio.to_thread\(filling.group, …\)"):
                Filling(broker, "x").group("orders")

    run(main())


@pytest.mark.parametrize("words", [("topic", "orders", "User:a", "read"), (AclResource.TOPIC, "orders", "User:a", 3)])
@pytest.mark.parametrize("kind", [lambda *words: words, Acl])
def test_a_rule_of_other_words_is_told_in_a_sentence(kind: Callable[..., Any], words: tuple[Any, ...]) -> None:
    security = Security(Login("h:1", Path("ca.pem"), "admin", "secret"))
    with pytest.raises(TypeError, match=r"a rule is Acl\(AclResource.TOPIC, .*, not .*'orders'"):
        security.add_acls(kind(*words))


def test_a_principal_is_told_in_a_sentence() -> None:
    security = Security(Login("h:1", Path("ca.pem"), "admin", "secret"))
    with pytest.raises(ValueError, match=r'a principal is "User:alice", .*, not \'alice\''):
        security.add_acls(Acl(AclResource.TOPIC, "orders", "alice", AclOperation.READ))


def test_in_the_caller_s_event_loop() -> None:
    async def main() -> list[str]:
        async with Broker(secure=True) as broker:
            bob = await asyncio.to_thread(broker.security.add_user, "bob", "a password")
            assert bob.password == "a password"
            async with Admin(bob.config) as admin:
                return sorted(await admin.topics.list())

    assert run(main()) == []


def test_a_directory_of_one_s_own_stays(tmp_path: Path) -> None:
    with Broker(secure=tmp_path / "secure") as broker:
        password = broker.security.admin.password
    with Broker(secure=tmp_path / "secure") as broker:
        assert broker.security.admin.password == password
        assert topics(broker.security.admin) == []


def test_a_process_keeps_its_users_when_it_is_killed() -> None:
    with BrokerProcess(secure=True) as broker:
        login = broker.security.add_user("carol")
        broker.kill()
        broker.start()
        assert topics(login) == []
        assert f"--config {login.ca.parent}/client.properties" in broker.log()


def test_settings_for_aiokafka() -> None:
    async def main() -> None:
        async with Broker(secure=True) as broker, AIOKafkaProducer(**broker.security.admin.aiokafka) as producer:
            assert (await producer.send_and_wait("orders", b"tea")).offset == 0

    run(main())


def test_a_file_of_settings_for_java(tmp_path: Path) -> None:
    with Broker(secure=True) as broker:
        file = broker.security.admin.java_file
        assert file.stat().st_mode & 0o777 == 0o600
        assert f'password="{broker.security.admin.password}"' in file.read_text()
        assert "sasl.jaas.config" in broker.security.admin.java
    assert not file.exists()


def test_a_broker_that_is_not_secured_has_no_users() -> None:
    with Broker() as broker, pytest.raises(RuntimeError, match=r"Broker\(secure=True\)"):
        _ = broker.security
    with pytest.raises(RuntimeError, match=r"BrokerProcess\(secure=True\)"):
        _ = BrokerProcess().security


def test_passwords_are_not_shown() -> None:
    assert "secret" not in repr(Login("h:1", Path("ca.pem"), "alice", "secret"))


def test_who_trusts_no_such_authority_stays_out() -> None:
    with Broker(secure=True) as one, Broker(secure=True) as other:
        mixed = Login(one.security.admin.servers, other.security.admin.ca, "admin", one.security.admin.password)
        with pytest.raises((AuthenticationError, ConnectionLostError)):
            topics(mixed)
