"""librdkafka, aiokafka and kafka-python talk to messages encoded here, and what they send is decoded here."""

from __future__ import annotations

import asyncio
import contextlib

from aiokafka.client import AIOKafkaClient
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from kohort.protocol.messages import api

from .scripted_broker import PARTITIONS, TOPIC, ScriptedBroker


def assert_traffic_survives(broker: ScriptedBroker, *names: str, left_over: frozenset[str] = frozenset()) -> None:
    """Every request that the client sent encodes again to its own bytes; the named APIs were among them.

    `left_over` names the APIs whose frames may hold more than the request.
    """
    assert broker.faults == []
    for exchange in broker.exchanges:
        entry = api(exchange.api)
        request = entry.request.decode(exchange.request, exchange.version)
        assert request.encode(exchange.version) == exchange.request
        assert not exchange.left_over or entry.name in left_over
    assert set(names) <= {api(exchange.api).name for exchange in broker.exchanges}


def test_librdkafka() -> None:
    with ScriptedBroker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.address, "client.id": "librdkafka"})
        metadata = admin.list_topics(timeout=20)
        assert metadata.cluster_id == "kohort"
        assert sorted(metadata.topics[TOPIC].partitions) == list(range(PARTITIONS))
        assert metadata.brokers[1].host == "127.0.0.1"
        cluster = admin.describe_cluster(request_timeout=20).result()
        assert (cluster.cluster_id, cluster.controller.id) == ("kohort", 1)
        groups = admin.list_consumer_groups(request_timeout=20).result()
        assert [group.group_id for group in groups.valid] == ["order-processors"]
        del admin
    # librdkafka 2.16 writes "all topics" in four bytes where Metadata v9+ has one (see docs/compatibility.md).
    assert_traffic_survives(broker, "ApiVersions", "Metadata", "ListGroups", left_over=frozenset({"Metadata"}))


def test_aiokafka() -> None:
    async def talk(address: str) -> None:
        client = AIOKafkaClient(bootstrap_servers=address, client_id="aiokafka")
        await client.bootstrap()
        try:
            await client.force_metadata_update()
            assert client.cluster.topics() == {TOPIC}
            assert client.cluster.partitions_for_topic(TOPIC) == set(range(PARTITIONS))
        finally:
            await client.close()

    with ScriptedBroker() as broker:
        asyncio.run(talk(broker.address))
    assert_traffic_survives(broker, "ApiVersions", "Metadata")


def test_kafka_python() -> None:
    with (
        ScriptedBroker() as broker,
        contextlib.closing(KafkaAdminClient(bootstrap_servers=broker.address, client_id="kafka-python")) as admin,
    ):
        assert list(admin.list_topics()) == [TOPIC]
        assert admin.describe_cluster()["cluster_id"] == "kohort"
    assert_traffic_survives(broker, "ApiVersions", "Metadata")
