"""What Kohort's client is tested against: each test by default with a Kohort server and with Apache Kafka's newest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from ..conftest import watch
from ..newest_kafka import KafkaCluster, NewestKafka, SecureKafka, running
from ..secured import USER, SecureKohort, SecureServer
from ..servers import QUICK_KRAFT, KohortServer, Server

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{USER}",
    "allow.everyone.if.no.acl.found": "true",
}
"""Access rules that only those who have some are held to."""


@pytest.fixture
def admin(broker: Server) -> AdminClient:
    """librdkafka's, for the broker that the test has; `new_topic` creates its topics with it."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture(params=["kohort", "kafka"])
def own_broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """As `broker`, but the test's own, to kill and to restart."""
    if request.param == "kafka":
        MAVEN.require()
        with running(NewestKafka(tmp_path / "kafka", QUICK_KRAFT)) as node:
            watch(request.node, node)
            yield node
        return
    server = KohortServer(tmp_path / "kohort")
    server.start()
    watch(request.node, server)
    yield server
    if server.process is not None:
        server.kill()


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """An Apache Kafka that listens with TLS and SASL, too."""
    MAVEN.require()
    with running(SecureKafka(tmp_path_factory.mktemp("secure-kafka") / "node", AUTHORIZED)) as node:
        yield node


@pytest.fixture(scope="session")
def secure_kohort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKohort]:
    """A Kohort server that listens with TLS and SASL, too."""
    server = SecureKohort(tmp_path_factory.mktemp("secure-kohort"), AUTHORIZED)
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["kohort", "kafka"])
def secure_server(request: pytest.FixtureRequest) -> SecureServer:
    """As `broker`, with TLS and SASL."""
    server: Any = request.getfixturevalue(f"secure_{request.param}")
    watch(request.node, server)
    return cast(SecureServer, server)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    """Three brokers of Apache Kafka, the test's own."""
    MAVEN.require()
    with KafkaCluster(tmp_path).running() as started:
        yield started
