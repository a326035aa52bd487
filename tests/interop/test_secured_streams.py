"""Kafka Streams over SASL_SSL, at a server with access rules, with the least that it has to be allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from tests.tools import MAVEN

from ..waiting import eventually
from .conftest import watch
from .secured import AUTHORIZED, SecureKohort, add_user, java_settings
from .streams_apps import QUICK_STREAMS, WITHIN, Fleet, Garage, configure
from .streams_words import Lines, Output

pytestmark = pytest.mark.long

PASSWORD = "counts words"
READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE


@pytest.fixture(scope="module")
def garage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garage]:
    MAVEN.require()
    directory = tmp_path_factory.mktemp("secured")
    server = SecureKohort(directory / "server", QUICK_STREAMS | AUTHORIZED)
    server.start()
    garage = Garage(server, directory)
    yield garage
    garage.close()
    server.stop()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_words_are_counted(garage: Garage, tmp_path: Path, protocol: str, request: pytest.FixtureRequest) -> None:
    server = garage.server
    assert isinstance(server, SecureKohort)
    watch(request.node, server)
    application = f"words-{protocol}"
    with garage.fleet(tmp_path) as fleet:
        source, target = fleet.topic(f"in-{protocol}", 2), fleet.topic(f"out-{protocol}", 2)
        configure(fleet.admin, application)
        add_user(server.bootstrap, application, PASSWORD)
        allow(fleet, application, source, target)
        secured = java_settings(server, "SASL_SSL", "SCRAM-SHA-512", application, PASSWORD)
        where = {"bootstrap.servers": f"localhost:{server.ports['SASL_SSL']}", "group.protocol": protocol}
        fleet.start(application, "word-count", configs=secured | where, source=source, target=target)
        lines, output = Lines(server.bootstrap, source, 2), Output(server.bootstrap, target, 2)
        lines.write(60)
        eventually(lambda: output.counts() == lines.counts(), within=WITHIN, what="all is counted, and once")
    assert f"event=denied principal='User:{application}'" not in server.stderr()


def allow(fleet: Fleet, application: str, source: str, target: str) -> None:
    """The least that an application has to be allowed; what went through a repartition topic is deleted there."""
    topic, literal, prefixed = ResourceType.TOPIC, ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    transactions = ResourceType.TRANSACTIONAL_ID
    rules = [
        *((topic, f"{application}-", prefixed, operation) for operation in (READ, WRITE, CREATE, DELETE)),
        (topic, source, literal, READ),
        (topic, target, literal, WRITE),
        (ResourceType.GROUP, application, literal, READ),
        (transactions, f"{application}-", prefixed, WRITE),
    ]
    bindings = [
        AclBinding(kind, name, pattern, f"User:{application}", "*", operation, AclPermissionType.ALLOW)
        for kind, name, pattern, operation in rules
    ]
    for future in fleet.admin.create_acls(bindings).values():
        future.result(20)
