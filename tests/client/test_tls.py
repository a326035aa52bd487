from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from kohort.client.cluster import Cluster
from kohort.client.config import ClientConfig
from kohort.client.connection import Connection
from kohort.client.errors import AuthenticationError, ConfigError, ConnectionLostError
from kohort.client.tls import tls_context
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.client.support.scram_server import SaslServer
from tests.client.support.scripted_broker import ScriptedBroker
from tests.waiting import run


class Certificates:
    """An authority, a broker's certificate and a client's, as files."""

    def __init__(self, directory: Path) -> None:
        self.authority = trustme.CA()
        self.ca = directory / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca)
        self.client = directory / "client.pem"
        self.authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(self.client)

    def server(self, host: str = "127.0.0.1", *, mutual: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(host).configure_cert(context)
        if mutual:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def scenario(context: ssl.SSLContext | None, test: Callable[[ScriptedBroker], Any]) -> None:
    async def main() -> None:
        async with ScriptedBroker({HeartbeatRequest: lambda asked: HeartbeatResponse()}, context=context) as broker:
            await test(broker)

    run(main())


def config(broker: ScriptedBroker, **settings: Any) -> ClientConfig:
    return ClientConfig(bootstrap_servers=broker.address, **{"security_protocol": "SSL", **settings})


def test_answers_come_over_tls_however_long(certificates: Certificates) -> None:
    async def test(broker: ScriptedBroker) -> None:
        connection = await Connection.open(broker.broker, config(broker, ssl_cafile=certificates.ca))
        for size in (1, 20_000, 30_000):
            answer = await connection.ask(HeartbeatRequest(group_id="g" * size), HeartbeatResponse)
            assert answer.error_code == 0
        assert broker.requests(HeartbeatRequest)[-1] == HeartbeatRequest(group_id="g" * 30_000)
        await connection.close()

    scenario(certificates.server(), test)


def test_sasl_goes_over_tls(certificates: Certificates) -> None:
    sasl = SaslServer("alice", "secret", "SCRAM-SHA-512")

    async def test(broker: ScriptedBroker) -> None:
        broker.script.update(sasl.script)
        settings = config(
            broker,
            security_protocol="SASL_SSL",
            ssl_cafile=certificates.ca,
            sasl_mechanism=sasl.mechanism,
            sasl_username="alice",
            sasl_password="secret",
        )
        async with Cluster(settings) as cluster:
            assert cluster.info.cluster_id == "scripted"

    scenario(certificates.server(), test)
    assert sasl.accepted == 1


def test_a_certificate_of_a_stranger_or_for_another_host_is_not_trusted(certificates: Certificates) -> None:
    async def test(broker: ScriptedBroker) -> None:
        with pytest.raises(AuthenticationError, match="certificate isn't trusted"):
            await Connection.open(broker.broker, config(broker))
        with pytest.raises(AuthenticationError, match=r"certificate isn't trusted: .*127.0.0.1"):
            await Connection.open(broker.broker, config(broker, ssl_cafile=certificates.ca))
        settings = config(broker, ssl_cafile=certificates.ca, ssl_check_hostname=False)
        await (await Connection.open(broker.broker, settings)).close()

    scenario(certificates.server("kafka.example.org"), test)


def test_a_broker_may_ask_for_the_clients_certificate(certificates: Certificates) -> None:
    async def test(broker: ScriptedBroker) -> None:
        settings = config(broker, ssl_cafile=certificates.ca, ssl_certfile=certificates.client)
        await (await Connection.open(broker.broker, settings)).close()
        with pytest.raises((AuthenticationError, ConnectionLostError), match=r"no TLS: .*CERTIFICATE|closed"):
            await Connection.open(broker.broker, config(broker, ssl_cafile=certificates.ca))

    scenario(certificates.server(mutual=True), test)


def test_the_wrong_protocol_for_a_port_is_said(certificates: Certificates) -> None:
    async def plaintext_port(broker: ScriptedBroker) -> None:
        with pytest.raises(ConnectionLostError, match=r"is it a TLS port\?"):
            await Connection.open(broker.broker, config(broker, ssl_cafile=certificates.ca))

    async def tls_port(broker: ScriptedBroker) -> None:
        with pytest.raises(ConnectionLostError):
            await Connection.open(broker.broker, ClientConfig(bootstrap_servers=broker.address))

    scenario(certificates.server(), tls_port)
    scenario(None, plaintext_port)


def test_files_that_cannot_be_used_are_said_before_anything_is_opened(
    tmp_path: Path, certificates: Certificates
) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"ssl_cafile='.*nonsense.pem'"):
        Cluster(ClientConfig(bootstrap_servers="b", security_protocol="SSL", ssl_cafile=nonsense))
    with pytest.raises(ConfigError, match="ssl_cafile=''"):  # "" isn't all public authorities
        tls_context(ClientConfig(bootstrap_servers="b", security_protocol="SSL", ssl_cafile=""))
    with pytest.raises(ConfigError, match=r"ssl_certfile='.*none.pem'"):
        tls_context(ClientConfig(bootstrap_servers="b", security_protocol="SSL", ssl_certfile=tmp_path / "none.pem"))


def test_a_context_of_ones_own_is_used_as_it_is() -> None:
    context = ssl.create_default_context()
    assert tls_context(ClientConfig(bootstrap_servers="b", security_protocol="SSL", ssl_context=context)) is context
