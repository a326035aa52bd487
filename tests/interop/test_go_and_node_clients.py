"""franz-go, sarama, kafka-go and kafkajs at listeners with TLS and SASL, by each mechanism, and as administrators."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from ..signed_tokens import signed
from . import toolchains
from .secured import AUTHORIZED, MECHANISMS, PASSWORD, USER, WAYS, SecureKohort
from .servers import Server
from .topics import create_topic

pytestmark = pytest.mark.timeout(toolchains.BUILD_S)

TOKEN_LIBRARIES = ("franz-go", "sarama", "kafkajs")
LIBRARIES = ("franz-go", "sarama", "kafka-go", "kafkajs")
SETTINGS = {
    **AUTHORIZED,
    "delegation.token.secret.key": "a secret",
    "ssl.principal.mapping.rules": f"RULE:^.*$/{USER}/",  # who has a certificate
}
READ, ALLOW, TOPIC, PREFIXED = 3, 3, 2, 4  # kafkajs gives the protocol's numbers


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKohort]:
    server = SecureKohort(tmp_path_factory.mktemp("secured"), SETTINGS)
    server.start()
    yield server
    server.stop()


def at(server: SecureKohort, protocol: str, mechanism: str, **more: str) -> dict[str, str]:
    """The options of a client that is let in there."""
    return {
        "bootstrap": f"localhost:{server.ports[protocol]}",
        "ca": str(server.house.ca) if protocol.endswith("SSL") else "",
        "certificate": str(server.house.client_pem) if protocol == "SSL" else "",
        "mechanism": mechanism,
        "user": USER,
        "password": PASSWORD,
        **more,
    }


def started(library: str, task: str, options: dict[str, str]) -> subprocess.CompletedProcess[str]:
    node = library == "kafkajs"
    program = toolchains.node_program("clients") if node else (str(toolchains.go_clients()), library)
    return subprocess.run([*program, task, json.dumps(options)], capture_output=True, text=True, timeout=60)


def found(library: str, task: str, options: dict[str, str]) -> Any:
    """What a program says, which must succeed."""
    done = started(library, task, options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        pytest.param(*way, marks=[] if way[0] == "SSL" or way == ("SASL_SSL", "SCRAM-SHA-512") else [pytest.mark.long])
        for way in WAYS
    ],
    ids=lambda text: text or "certificate",
)
def test_records(secured: SecureKohort, library: str, protocol: str, mechanism: str) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": secured.bootstrap}), f"{library}-{protocol}-{mechanism}")
    read = found(library, "records", at(secured, protocol, mechanism, topic=topic, group=topic))["read"]
    assert read == [str(number) for number in range(100)]


@pytest.mark.parametrize("library", TOKEN_LIBRARIES)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_signed_token(secured: SecureKohort, library: str, protocol: str) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": secured.bootstrap}), f"{library}-{protocol}-token")
    options = at(secured, protocol, "OAUTHBEARER", topic=topic, group=topic, token=signed(sub=USER))
    assert found(library, "records", options)["read"] == [str(number) for number in range(100)]


@pytest.mark.parametrize("library", TOKEN_LIBRARIES)
def test_a_token_that_nobody_signed(secured: SecureKohort, library: str) -> None:
    forged = signed("stranger", headers={"kid": "first"}, sub=USER)
    done = started(library, "records", at(secured, "SASL_SSL", "OAUTHBEARER", topic="t", group="t", token=forged))
    assert (done.returncode, done.stdout) == (1, "")  # each says it in other words


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password(secured: SecureKohort, library: str, mechanism: str) -> None:
    done = started(library, "records", at(secured, "SASL_SSL", mechanism, topic="t", group="t", password="wrong"))
    assert done.returncode == 1
    assert "authentication" in done.stderr.lower()


def test_franz_go_administers(secured: SecureKohort) -> None:
    assert found("franz-go", "admin", at(secured, "SASL_SSL", "SCRAM-SHA-512")) == {
        "rules": {"listed": ["User:franz * ALLOW READ TOPIC PREFIXED orders"], "removed": 1},
        "quotas": ["{user=franz} [consumer_byte_rate=5000000.000000]"],
        "users": "[SCRAM-SHA-512=iterations=5000]",
        "tokens": [USER, 1, 0],
    }


def test_sarama_administers(secured: SecureKohort) -> None:
    assert found("sarama", "admin", at(secured, "SASL_SSL", "SCRAM-SHA-256")) == {
        "rules": {"listed": ["User:sarama * Deny Describe Group Literal g"], "removed": 1},
        "quotas": ["client-id sarama map[producer_byte_rate:6e+06]"],
        "users": "SCRAM-SHA-256 6000",
    }


def test_kafkajs_administers(secured: SecureKohort) -> None:
    rule = {"principal": "User:kafkajs", "host": "*", "operation": READ, "permissionType": ALLOW}
    resource = {"resourceType": TOPIC, "resourceName": "orders", "resourcePatternType": PREFIXED}
    assert found("kafkajs", "admin", at(secured, "SASL_SSL", "SCRAM-SHA-512")) == {
        "listed": [{**resource, "acls": [rule]}],
        "removed": 1,
    }


@pytest.mark.parametrize("library", ["franz-go", "sarama"])
def test_there_is_no_authorizer(server: Server, library: str) -> None:
    assert "Security features are disabled" in found(library, "rules", {"bootstrap": server.bootstrap})["error"]


def test_kafkajs_says_that_there_is_no_authorizer(server: Server) -> None:
    done = started("kafkajs", "rules", {"bootstrap": server.bootstrap})
    assert (done.returncode, "Security features are disabled" in done.stderr) == (1, True), done.stderr
