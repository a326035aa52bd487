"""Administration through kafka-python's KafkaAdminClient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, OffsetSpec, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    KafkaError,
    NoError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from ..waiting import eventually
from .clients import LIBRARIES, Message
from .servers import Server

NewTopic = Callable[..., str]
NewName = Callable[[], str]


@pytest.fixture
def client(server: Server) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=server.bootstrap)) as client:
        yield client


def fill(server: Server, topic: str) -> None:
    LIBRARIES[1].produce(server.bootstrap, topic, [Message(b"%d" % i, timestamp=1000 * (i + 1)) for i in range(10)])


def test_a_topic_is_created_described_and_deleted(client: KafkaAdminClient, new_name: NewName) -> None:
    name = new_name()
    client.create_topics({name: {"num_partitions": 3, "configs": {"retention.ms": "1000"}}}, wait_for_metadata=True)
    found = client.describe_topics([name])[0]
    assert (found["name"], found["is_internal"], len(found["partitions"])) == (name, False, 3)
    with pytest.raises(TopicAlreadyExistsError):
        client.create_topics({name: {}})
    client.delete_topics([name])
    with pytest.raises(UnknownTopicOrPartitionError):
        client.delete_topics([name])


@pytest.mark.parametrize(
    ("name", "wanted", "error"),
    [
        ("bad name!", {}, InvalidTopicError),
        ("none", {"num_partitions": 0}, InvalidPartitionsError),
        ("replicated", {"num_partitions": 1, "replication_factor": 3}, InvalidReplicationFactorError),
        ("bad-config", {"configs": {"cleanup.policy": "burn"}}, InvalidConfigurationError),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    name: str, wanted: dict[str, object], error: type[KafkaError], client: KafkaAdminClient
) -> None:
    with pytest.raises(error):
        client.create_topics({name: wanted})


def test_partitions_are_added(client: KafkaAdminClient, new_topic: NewTopic) -> None:
    name = new_topic()
    client.create_partitions({name: 4})
    assert len(client.describe_topics([name])[0]["partitions"]) == 4
    with pytest.raises(InvalidPartitionsError):
        client.create_partitions({name: 2})


@pytest.mark.parametrize("incremental", [True, False], ids=["IncrementalAlterConfigs", "AlterConfigs"])
def test_configs(incremental: bool, client: KafkaAdminClient, new_topic: NewTopic) -> None:
    name = new_topic()

    def modified() -> dict[str, str]:
        found = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])["topic"][name]
        return {key: data["value"] for key, data in found.items()}

    assert modified() == {}
    wanted = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "1000", "cleanup.policy": "compact"})
    client.alter_configs([wanted], incremental=incremental)
    assert modified() == {"retention.ms": "1000", "cleanup.policy": "compact"}
    client.reset_configs([ConfigResource(ConfigResourceType.TOPIC, name, ["retention.ms"])], incremental=incremental)
    assert modified() == {"cleanup.policy": "compact"}


def test_records_are_deleted_and_offsets_listed(client: KafkaAdminClient, server: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(server, topic)
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec | int) -> int:
        return client.list_partition_offsets({partition: spec})[partition].offset

    assert [offset(spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST, OffsetSpec.MAX_TIMESTAMP)] == [0, 10, 9]
    assert offset(2500) == 2
    client.delete_records({partition: 4})
    assert offset(OffsetSpec.EARLIEST) == 4
    assert [m.offset for m in LIBRARIES[1].consume(server.bootstrap, topic)] == list(range(4, 10))


def test_a_group_from_its_first_member_to_its_end(
    client: KafkaAdminClient, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, group = new_topic(2), new_name()
    fill(server, topic)
    partition = TopicPartition(topic, 0)
    with closing(
        KafkaConsumer(topic, bootstrap_servers=server.bootstrap, group_id=group, auto_offset_reset="earliest")
    ) as member:
        # Shorter polls may end amid a join, which it then forgets.
        eventually(lambda: member.poll(timeout_ms=2000), within=60, what="it reads")
        found = client.describe_groups([group])[group]
        assert (found["group_state"], found["protocol_type"], found["protocol_data"]) == ("Stable", "consumer", "range")
        assert group in [g["group_id"] for g in client.list_groups(states_filter=["Stable"])]
        assert group not in [g["group_id"] for g in client.list_groups(states_filter=["Empty"])]
        assert client.delete_groups([group])[group] == "NonEmptyGroupError"
    assert client.describe_groups([group])[group]["group_state"] == "Empty"
    assert client.list_group_offsets([group])[group][partition].offset == 10
    altered = client.alter_group_offsets(group, {partition: OffsetAndMetadata(3, "back", -1)})
    assert altered == {partition: NoError}
    found_offset = client.list_group_offsets([group])[group][partition]
    assert (found_offset.offset, found_offset.metadata) == (3, "back")
    client.reset_group_offsets(group, {partition: OffsetSpec.LATEST})
    assert client.list_group_offsets([group])[group][partition].offset == 10
    assert client.delete_group_offsets(group, [partition]) == {partition: NoError}
    assert partition not in client.list_group_offsets([group])[group]
    assert client.delete_groups([group])[group] == "OK"
    assert client.delete_groups([group])[group] == "GroupIdNotFoundError"


def test_transactions_and_producers_are_seen(
    client: KafkaAdminClient, server: Server, new_topic: NewTopic, new_name: NewName
) -> None:
    topic, name = new_topic(), new_name()
    partition = TopicPartition(topic, 0)
    with LIBRARIES[1].transactional(server.bootstrap, name) as producer:
        producer.begin()
        producer.send(topic, b"v")
        listed = [t for ts in client.list_transactions().values() for t in ts if t.transactional_id == name]
        assert [str(t.state).rpartition(".")[2].lower() for t in listed] == ["ongoing"]
        described = client.describe_transactions([name])[name]
        assert set(described.topic_partitions) == {partition}
        states = client.describe_producers([partition])[partition].active_producers
        assert [(s.producer_id, s.last_sequence) for s in states] == [(described.producer_id, 0)]
        producer.commit()


def test_log_dirs_have_sizes(client: KafkaAdminClient, server: Server, new_topic: NewTopic) -> None:
    topic = new_topic()
    fill(server, topic)
    sizes = [
        p["partition_size"]
        for broker in client.describe_log_dirs({topic: [0]})
        for directory in broker["log_dirs"]
        for t in directory["topics"]
        if t["name"] == topic
        for p in t["partitions"]
    ]
    assert len(sizes) == 1
    assert sizes[0] > 0
