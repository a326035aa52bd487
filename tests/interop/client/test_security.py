"""TLS and SASL, against Apache Kafka."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.admin import AdminClient

from kohort.client import ClientConfig, Consumer, Producer
from kohort.client.cluster import Cluster
from kohort.client.errors import AuthenticationError, NoBrokerError

from ...waiting import run
from ..newest_kafka import SecureKafka
from ..topics import create_topic
from .records import take

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def config(kafka: SecureKafka, protocol: str, **settings: Any) -> ClientConfig:
    """Settings that let us in, but for what is said otherwise."""
    known: dict[str, Any] = {}
    if protocol.startswith("SASL"):
        known |= {"sasl_username": kafka.USER, "sasl_password": kafka.PASSWORD}
    if protocol.endswith("SSL"):
        known |= {"ssl_cafile": kafka.ca}
    if protocol == "SSL":
        known |= {"ssl_certfile": kafka.client_pem}
    where = {"bootstrap_servers": f"localhost:{kafka.ports[protocol]}", "security_protocol": protocol}
    return ClientConfig(**where | known | settings)


def enter(settings: ClientConfig) -> float:
    """Connect, ask, close; in how many seconds."""

    async def scenario() -> None:
        async with Cluster(settings) as cluster:
            assert cluster.info.brokers

    started = time.monotonic()
    run(scenario())
    return time.monotonic() - started


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_in_with_name_and_password(secure_kafka: SecureKafka, protocol: str, mechanism: str) -> None:
    enter(config(secure_kafka, protocol, sasl_mechanism=mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_soon(secure_kafka: SecureKafka, mechanism: str) -> None:
    started = time.monotonic()
    with pytest.raises(AuthenticationError, match="uthentication failed"):
        enter(config(secure_kafka, "SASL_SSL", sasl_mechanism=mechanism, sasl_password="wrong"))
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("client", [Consumer, Producer])
def test_every_client_says_so(secure_kafka: SecureKafka, client: Any) -> None:
    async def scenario() -> None:
        async with client(config(secure_kafka, "SASL_SSL", sasl_password="wrong")):
            pass

    with pytest.raises(AuthenticationError):
        run(scenario(), timeout_s=30)


def test_a_broker_that_nobody_vouches_for(secure_kafka: SecureKafka, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with pytest.raises(AuthenticationError, match="certificate"):
        enter(config(secure_kafka, "SASL_SSL", ssl_cafile=other))


def test_a_certificate_for_another_host(secure_kafka: SecureKafka) -> None:
    by_address = f"127.0.0.1:{secure_kafka.ports['SASL_SSL']}"
    with pytest.raises(AuthenticationError, match="certificate"):
        enter(config(secure_kafka, "SASL_SSL", bootstrap_servers=by_address))


def test_no_client_certificate_where_one_is_asked_for(secure_kafka: SecureKafka) -> None:
    with pytest.raises(AuthenticationError):
        enter(config(secure_kafka, "SSL", ssl_certfile=None))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_records_there_and_back(secure_kafka: SecureKafka, protocol: str) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": secure_kafka.bootstrap}), f"secured-{protocol}")
    settings = config(secure_kafka, protocol, **({} if protocol == "SSL" else {"sasl_mechanism": "SCRAM-SHA-512"}))

    async def scenario() -> None:
        async with Producer(settings) as producer:
            for n in range(100):
                await producer.send(topic, b"%d" % n + b"." * 10_000)  # more than one TLS record each
        async with Consumer(settings, group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            assert [r.value.rstrip(b".") for r in await take(consumer, 100)] == [b"%d" % n for n in range(100)]

    run(scenario())


def test_no_tls_where_it_is_wanted_is_said(secure_kafka: SecureKafka) -> None:
    with pytest.raises(NoBrokerError):
        enter(ClientConfig(bootstrap_servers=f"localhost:{secure_kafka.ports['SASL_SSL']}", bootstrap_timeout_ms=1000))
