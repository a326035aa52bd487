"""Kafka's command line tools for share groups."""

from __future__ import annotations

import json
from collections.abc import Callable

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ..waiting import eventually
from .java.jvm import Tools
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
VERIFIABLE = "org.apache.kafka.tools.VerifiableShareConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"


def produce(server: Server, topic: str, number: int) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for value in range(number):
        producer.produce(topic, b"value-%d" % value)
    assert producer.flush(20) == 0


def from_the_beginning(admin: AdminClient, group: str) -> None:
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def test_the_console_consumer_and_what_is_left_of_its_group(
    tools: Tools, server: Server, admin: AdminClient, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(), new_name()
    from_the_beginning(admin, group)
    produce(server, topic, 20)

    done = tools.succeed(server.bootstrap, CONSOLE, "--topic", topic, "--group", group, "--max-messages", "20")
    assert sorted(done.lines) == sorted(f"value-{value}" for value in range(20))

    listed = tools.succeed(server.bootstrap, GROUPS, "--list")
    assert group in listed.lines

    def lag() -> str:
        offsets = tools.succeed(server.bootstrap, GROUPS, "--describe", "--group", group, "--offsets")
        (row,) = [line.split() for line in offsets.lines if topic in line]
        return row[-1]

    eventually(lambda: lag() == "0", what="all is acknowledged", within=20)
    tools.succeed(server.bootstrap, GROUPS, "--delete", "--group", group)
    assert group not in tools.succeed(server.bootstrap, GROUPS, "--list").lines


def test_the_verifiable_consumer(
    tools: Tools, server: Server, admin: AdminClient, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(), new_name()
    from_the_beginning(admin, group)
    produce(server, topic, 20)
    done = tools.succeed(
        server.bootstrap, VERIFIABLE, "--topic", topic, "--group-id", group, "--max-messages", "20",
        "--acknowledgement-mode", "sync",
    )  # fmt: skip
    events = [json.loads(line) for line in done.lines if line.startswith("{")]
    acknowledged = [event for event in events if event["name"] == "offsets_acknowledged"]
    assert all(event["success"] for event in acknowledged)
    assert sum(event["count"] for event in acknowledged) == 20
