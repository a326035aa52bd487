"""Administration through confluent-kafka's AdminClient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from ..waiting import eventually
from .clients import LIBRARIES, Message
from .servers import Server

CreateTopic = Callable[..., str]
NewName = Callable[[], str]


def refused(code: int) -> pytest.RaisesExc[KafkaException]:
    return pytest.RaisesExc(KafkaException, check=lambda error: error.args[0].code() == code)


def fill(server: Server, topic: str, count: int = 10) -> None:
    LIBRARIES[0].produce(server.bootstrap, topic, [Message(b"%d" % i) for i in range(count)])


def test_a_topic_is_created_described_and_deleted(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    admin.create_topics([NewTopic(name, 3, 1, config={"cleanup.policy": "compact"})])[name].result(20)
    found = admin.describe_topics(TopicCollection([name]))[name].result(20)
    assert (found.name, found.is_internal, len(found.partitions)) == (name, False, 3)
    assert {(p.id, p.leader.id, len(p.replicas), len(p.isr)) for p in found.partitions} == {
        (i, found.partitions[0].leader.id, 1, 1) for i in range(3)
    }
    assert name in admin.list_topics(timeout=20).topics
    admin.delete_topics([name])[name].result(20)
    eventually(lambda: name not in admin.list_topics(timeout=20).topics)
    with refused(KafkaError.UNKNOWN_TOPIC_OR_PART):
        admin.describe_topics(TopicCollection([name]))[name].result(20)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("bad name!", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("no-partitions", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("too-many-replicas", 1, 2), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("bad-config", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG),
        (NewTopic("unknown-config", 1, 1, config={"no.such.key": "1"}), KafkaError.INVALID_CONFIG),
    ],
    ids=lambda value: value.topic if isinstance(value, NewTopic) else "",
)
def test_a_topic_that_cannot_be_is_refused(topic: NewTopic, code: int, admin: AdminClient) -> None:
    with refused(code):
        admin.create_topics([topic])[topic.topic].result(20)


def test_a_topic_that_is_there_is_not_created_again(admin: AdminClient, new_topic: CreateTopic) -> None:
    name = new_topic()
    with refused(KafkaError.TOPIC_ALREADY_EXISTS):
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)


def test_validation_alone_creates_nothing(admin: AdminClient, new_name: NewName) -> None:
    name = new_name()
    admin.create_topics([NewTopic(name, 1, 1)], validate_only=True)[name].result(20)
    assert name not in admin.list_topics(timeout=20).topics


def test_partitions_are_added_and_never_taken_away(admin: AdminClient, server: Server, new_topic: CreateTopic) -> None:
    name = new_topic(2)
    admin.create_partitions([NewPartitions(name, 5)])[name].result(20)
    eventually(lambda: len(admin.list_topics(name, timeout=20).topics[name].partitions) == 5)
    for total in (5, 3):
        with refused(KafkaError.INVALID_PARTITIONS):
            admin.create_partitions([NewPartitions(name, total)])[name].result(20)


def test_configs_are_set_described_and_reset(admin: AdminClient, new_topic: CreateTopic) -> None:
    name = new_topic(**{"retention.ms": "1000"})

    def alter(key: str, value: str | None, operation: AlterConfigOpType) -> None:
        resource = ConfigResource(ResourceType.TOPIC, name)
        resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=operation))
        admin.incremental_alter_configs([resource])[resource].result(20)

    def described(key: str) -> tuple[str, ConfigSource]:
        resource = ConfigResource(ResourceType.TOPIC, name)
        entry = admin.describe_configs([resource])[resource].result(20)[key]
        return entry.value, ConfigSource(entry.source)

    assert described("retention.ms") == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    alter("retention.ms", "2000", AlterConfigOpType.SET)
    assert described("retention.ms") == ("2000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    alter("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    assert sorted(described("cleanup.policy")[0].split(",")) == ["compact", "delete"]
    alter("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    assert described("cleanup.policy")[0] == "compact"
    alter("retention.ms", None, AlterConfigOpType.DELETE)
    assert described("retention.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)
    with refused(KafkaError.INVALID_CONFIG):
        alter("segment.bytes", "-5", AlterConfigOpType.SET)


def test_the_brokers_own_configs(admin: AdminClient, server: Server) -> None:
    node = next(iter(admin.list_topics(timeout=20).brokers))
    resource = ConfigResource(ResourceType.BROKER, str(node))
    found = admin.describe_configs([resource])[resource].result(20)
    assert found["offsets.topic.num.partitions"].value == server.settings["offsets.topic.num.partitions"]
    assert found["log.retention.hours"].value == "168"


def test_records_are_deleted_up_to_an_offset(admin: AdminClient, server: Server, new_topic: CreateTopic) -> None:
    topic = new_topic()
    fill(server, topic)
    upto = TopicPartition(topic, 0, 7)
    assert admin.delete_records([upto])[upto].result(20).low_watermark == 7
    assert [m.offset for m in LIBRARIES[0].consume(server.bootstrap, topic)] == [7, 8, 9]
    beyond = TopicPartition(topic, 0, 11)
    with refused(KafkaError.OFFSET_OUT_OF_RANGE):
        admin.delete_records([beyond])[beyond].result(20)


@pytest.mark.parametrize(
    ("spec", "offset"),
    [
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.latest(), 10),
        (OffsetSpec.max_timestamp(), 9),
        (OffsetSpec.for_timestamp(3000), 2),
    ],
    ids=["earliest", "latest", "max timestamp", "by timestamp"],
)
def test_offsets_are_listed(
    spec: OffsetSpec, offset: int, admin: AdminClient, server: Server, new_topic: CreateTopic
) -> None:
    topic = new_topic()
    LIBRARIES[0].produce(server.bootstrap, topic, [Message(b"v", timestamp=1000 * (i + 1)) for i in range(10)])
    partition = TopicPartition(topic, 0)
    listed = admin.list_offsets({partition: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    assert listed[partition].result(20).offset == offset


def test_a_groups_offsets_are_altered_listed_and_deleted(
    admin: AdminClient, server: Server, new_topic: CreateTopic, new_name: NewName
) -> None:
    topic, group = new_topic(2), new_name()
    wanted = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p, 3 + p) for p in range(2)])]
    admin.alter_consumer_group_offsets(wanted)[group].result(20)
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(20)
    assert {(p.partition, p.offset) for p in listed.topic_partitions} == {(0, 3), (1, 4)}
    admin.delete_consumer_groups([group])[group].result(20)
    with refused(KafkaError.GROUP_ID_NOT_FOUND):
        admin.delete_consumer_groups([group])[group].result(20)
    assert group not in [g.group_id for g in admin.list_consumer_groups().result(20).valid]


def test_a_group_with_members_is_neither_deleted_nor_altered(
    admin: AdminClient, server: Server, new_topic: CreateTopic, new_name: NewName
) -> None:
    topic, group = new_topic(), new_name()
    fill(server, topic)
    member = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    member.subscribe([topic])
    assert member.poll(20) is not None
    with refused(KafkaError.NON_EMPTY_GROUP):
        admin.delete_consumer_groups([group])[group].result(20)
    offsets = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])]
    altered = admin.alter_consumer_group_offsets(offsets)[group].result(20)
    assert altered.topic_partitions[0].error.code() == KafkaError.UNKNOWN_MEMBER_ID
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(20)
    assert group in [g.group_id for g in listed.valid]
    member.close()


def test_the_cluster_is_described(admin: AdminClient, server: Server) -> None:
    found = admin.describe_cluster().result(20)
    assert [f"{node.host}:{node.port}" for node in found.nodes] == [server.bootstrap]
    assert found.controller.id == found.nodes[0].id
    assert found.cluster_id == admin.list_topics(timeout=20).cluster_id
