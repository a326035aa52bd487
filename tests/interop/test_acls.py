"""Access rules and client quotas through librdkafka, kafka-python and Kafka's own tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as PythonResourceType
from kafka.errors import NoError, SecurityDisabledError

from .java.jvm import Finished, Tools
from .servers import KohortServer, Server

ACLS = "org.apache.kafka.tools.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"

AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
EVERY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
READS = AclBinding(
    ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.READ,
    AclPermissionType.ALLOW,
)  # fmt: skip
PYTHON_EVERY = ACLFilter(
    None, None, ACLOperation.ANY, ACLPermissionType.ANY,
    ResourcePatternFilter(PythonResourceType.ANY, None, ACLResourcePatternType.ANY),
)  # fmt: skip


@pytest.fixture(scope="module")
def authorized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = KohortServer(tmp_path_factory.mktemp("authorized"), AUTHORIZED)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def run_tool(tools: Tools, authorized: Server) -> Callable[..., Finished]:
    """Runs a tool, which must succeed, against the server with an authorizer."""
    return partial(tools.succeed, authorized.bootstrap)


def test_librdkafka(authorized: Server) -> None:
    admin = AdminClient({"bootstrap.servers": authorized.bootstrap})
    admin.create_acls([READS])[READS].result(20)
    assert admin.describe_acls(EVERY).result(20) == [READS]
    assert admin.delete_acls([EVERY])[EVERY].result(20) == [READS]
    assert admin.describe_acls(EVERY).result(20) == []


def test_librdkafka_without_an_authorizer(server: Server, admin: AdminClient) -> None:
    assert admin.describe_acls(EVERY).result(20) == []  # librdkafka passes over the error of this response
    for future in (admin.create_acls([READS])[READS], admin.delete_acls([EVERY])[EVERY]):
        with pytest.raises(KafkaException) as failed:
            future.result(20)
        assert failed.value.args[0].code() == KafkaError.SECURITY_DISABLED


def test_kafka_python(authorized: Server) -> None:
    pattern = ResourcePattern(PythonResourceType.GROUP, "g", ACLResourcePatternType.PREFIXED)
    acl = ACL("User:bob", "10.0.0.7", ACLOperation.DESCRIBE, ACLPermissionType.DENY, pattern)
    with closing(KafkaAdminClient(bootstrap_servers=authorized.bootstrap)) as admin:
        assert admin.create_acls([acl])["succeeded"] == [acl]
        found, error = admin.describe_acls(PYTHON_EVERY)
        assert (found, error) == ([acl], NoError)
        ((_, deleted, error),) = admin.delete_acls([PYTHON_EVERY])
        assert (list(deleted), error) == ([acl], NoError)


def test_kafka_python_without_an_authorizer(server: Server) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=server.bootstrap)) as admin, pytest.raises(SecurityDisabledError):
        admin.describe_acls(PYTHON_EVERY)


def test_kafka_acls(run_tool: Callable[..., Finished]) -> None:
    run_tool(ACLS, "--add", "--allow-principal", "User:alice", "--consumer", "--topic", "orders", "--group", "g")
    run_tool(
        ACLS, "--add", "--deny-principal", "User:bob", "--operation", "Write", "--topic", "ord",
        "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    listed = run_tool(ACLS, "--list", "--topic", "orders", "--resource-pattern-type", "match").out
    assert "principal=User:alice, host=*, operation=READ, permissionType=ALLOW" in listed
    assert "principal=User:bob, host=*, operation=WRITE, permissionType=DENY" in listed
    run_tool(ACLS, "--remove", "--force", "--topic", "ord", "--resource-pattern-type", "prefixed")
    run_tool(ACLS, "--remove", "--force", "--topic", "orders", "--group", "g")
    assert "User:" not in run_tool(ACLS, "--list").out


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        (("--entity-type", "clients", "--entity-name", "app"), "producer_byte_rate"),
        (("--entity-type", "users", "--entity-default"), "request_percentage"),
        (("--entity-type", "ips", "--entity-name", "10.0.0.7"), "connection_creation_rate"),
    ],
    ids=["clients", "users", "ips"],
)
def test_kafka_configs_sets_quotas(entity: tuple[str, ...], key: str, run_tool: Callable[..., Finished]) -> None:
    run_tool(CONFIGS, "--alter", "--add-config", f"{key}=7", *entity)
    assert f"{key}=7.0" in run_tool(CONFIGS, "--describe", *entity).out
    run_tool(CONFIGS, "--alter", "--delete-config", key, *entity)
    assert key not in run_tool(CONFIGS, "--describe", *entity).out
