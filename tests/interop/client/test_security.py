"""TLS and SASL: our client against Kohort and Apache Kafka."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka.admin import AdminClient

from kohort.client import ClientConfig, Consumer, Producer
from kohort.client.cluster import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import AuthenticationError, NoBrokerError
from kohort.client.types import Broker
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

from ...signed_tokens import signed
from ...waiting import run, until
from ..secured import MECHANISMS, SecureServer, client_config
from ..topics import create_topic
from .records import take


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
def test_in_with_name_and_password(secure_server: SecureServer, protocol: str, mechanism: str) -> None:
    enter(client_config(secure_server, protocol, sasl_mechanism=mechanism))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_soon(secure_server: SecureServer, mechanism: str) -> None:
    started = time.monotonic()
    with pytest.raises(AuthenticationError, match="uthentication failed"):
        enter(client_config(secure_server, "SASL_SSL", sasl_mechanism=mechanism, sasl_password="wrong"))
    assert time.monotonic() - started < 50


def by_token(server: SecureServer, **settings: Any) -> ClientConfig:
    return client_config(server, "SASL_SSL", sasl_mechanism="OAUTHBEARER", **settings)


def test_in_with_a_token(secure_server: SecureServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(signed() + "\n")
    enter(by_token(secure_server, sasl_token=signed, sasl_extensions={"traceId": "7"}))
    enter(by_token(secure_server, sasl_token_url=(tmp_path / "token").as_uri()))


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_wrong_token_is_said_soon(secure_server: SecureServer, name: str) -> None:
    started = time.monotonic()
    with pytest.raises(AuthenticationError, match="invalid_token"):
        enter(by_token(secure_server, sasl_token=lambda: signed(name, aud="another")))
    assert time.monotonic() - started < 50


def test_a_new_token_is_shown_before_the_old_one_expires(secure_server: SecureServer) -> None:
    made: list[str] = []

    async def token() -> str:
        made.append(signed(exp=int(time.time()) + 3))
        return made[-1]

    async def scenario() -> None:
        settings = by_token(secure_server, sasl_token=token)
        host, port = settings.addresses[0]
        connection = await Connection.open(Broker(1, host, port), settings)
        await until(lambda: len(made) == 3)
        await connection.ask(MetadataRequest(topics=[]), MetadataResponse)
        await connection.close()

    run(scenario())


@pytest.mark.parametrize("client", [Consumer, Producer])
def test_every_client_says_so(secure_server: SecureServer, client: Any) -> None:
    async def scenario() -> None:
        async with client(client_config(secure_server, "SASL_SSL", sasl_password="wrong")):
            pass

    with pytest.raises(AuthenticationError):
        run(scenario(), timeout_s=30)


def test_a_broker_that_nobody_vouches_for(secure_server: SecureServer, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with pytest.raises(AuthenticationError, match="certificate"):
        enter(client_config(secure_server, "SASL_SSL", ssl_cafile=other))


def test_a_certificate_for_another_host(secure_server: SecureServer) -> None:
    by_address = f"127.0.0.1:{secure_server.ports['SASL_SSL']}"
    with pytest.raises(AuthenticationError, match="certificate"):
        enter(client_config(secure_server, "SASL_SSL", bootstrap_servers=by_address))


def test_no_client_certificate_where_one_is_asked_for(secure_server: SecureServer) -> None:
    with pytest.raises(AuthenticationError):
        enter(client_config(secure_server, "SSL", ssl_certfile=None))


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_records_there_and_back(secure_server: SecureServer, protocol: str) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": secure_server.bootstrap}), f"secured-{protocol}")
    settings = client_config(
        secure_server, protocol, **({} if protocol == "SSL" else {"sasl_mechanism": "SCRAM-SHA-512"})
    )

    async def scenario() -> None:
        async with Producer(settings) as producer:
            for n in range(100):
                await producer.send(topic, b"%d" % n + b"." * 10_000)  # more than one TLS record each
        async with Consumer(settings, group_id=topic, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            assert [r.value.rstrip(b".") for r in await take(consumer, 100)] == [b"%d" % n for n in range(100)]

    run(scenario())


def test_no_tls_where_it_is_wanted_is_said(secure_server: SecureServer) -> None:
    with pytest.raises(NoBrokerError):
        enter(ClientConfig(bootstrap_servers=f"localhost:{secure_server.ports['SASL_SSL']}", bootstrap_timeout_ms=1000))
