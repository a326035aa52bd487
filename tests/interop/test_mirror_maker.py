"""MirrorMaker 2 between Kohort servers: records, and access rules where there is an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.tools import MAVEN

from ..waiting import eventually
from .conftest import watch
from .java import jvm
from .secured import AUTHORIZED
from .servers import KohortServer, Server
from .topics import create_topic

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
WITHIN = 90.0
"""Seconds that it may take to start and copy on a busy machine; some ten when it is at rest."""
RULE = AclBinding(
    ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", "*", AclOperation.READ,
    AclPermissionType.ALLOW,
)  # fmt: skip
EVERY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    yield server
    server.stop()


def mirroring(sources: dict[str, Server], target: Server) -> str:
    """Settings that have the topic "orders" of each source copied."""
    topics = ("checkpoints.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage")
    lines = [
        f"clusters={','.join(sources)},target",
        f"target.bootstrap.servers={target.bootstrap}",
        *(f"{name}.bootstrap.servers={server.bootstrap}" for name, server in sources.items()),
        *(f"{name}->target.enabled=true" for name in sources),
        *(f"{each}.replication.factor=1" for each in topics),
        "replication.factor=1",
        "topics=orders",
        "emit.heartbeats.enabled=false",
        "emit.checkpoints.enabled=false",
        "plugin.discovery=service_load",
        "offset.storage.partitions=1",
        "sync.topic.acls.interval.seconds=1",
    ]
    return "\n".join(lines)


@pytest.mark.long
def test_records_and_access_rules_are_copied(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    MAVEN.require()
    with ExitStack() as stack:
        ruled, open_to_all, target = (
            stack.enter_context(running(KohortServer(tmp_path / name, settings)))
            for name, settings in (("ruled", AUTHORIZED), ("open", None), ("target", AUTHORIZED))
        )
        sources = {"ruled": ruled, "open": open_to_all}
        for server in (*sources.values(), target):
            watch(request.node, server)
        for server in sources.values():
            admin = AdminClient({"bootstrap.servers": server.bootstrap})
            create_topic(admin, "orders")
            producer = Producer({"bootstrap.servers": server.bootstrap})
            for number in range(100):
                producer.produce("orders", b"%d" % number)
            assert producer.flush(20) == 0
        admin = AdminClient({"bootstrap.servers": ruled.bootstrap})
        admin.create_acls([RULE])[RULE].result(20)
        settings = tmp_path / "mirror.properties"
        settings.write_text(mirroring(sources, target))
        process = jvm.start("kafka", MAIN, str(settings))
        stack.callback(jvm.stop, process)
        for name in sources:
            assert read(target, f"{name}.orders", 100) == [b"%d" % number for number in range(100)]
        admin = AdminClient({"bootstrap.servers": target.bootstrap})
        eventually(lambda: admin.describe_acls(EVERY).result(20), within=WITHIN, what="the access rule is copied")
        (copied,) = admin.describe_acls(EVERY).result(20)
        assert (copied.name, copied.principal, copied.operation) == ("ruled.orders", "User:alice", AclOperation.READ)


def read(server: Server, topic: str, count: int) -> list[bytes | None]:
    """The values of so many records of a topic, once it is there."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": topic, "allow.auto.create.topics": False})
    eventually(lambda: topic in consumer.list_topics(timeout=20).topics, within=WITHIN, what=f"there is {topic}")
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in consumer.consume(count, WITHIN)]
    consumer.close()
    return values
