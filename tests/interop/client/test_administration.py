"""Kohort's admin client does and sees what librdkafka's does and sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Consumer as Librdkafka
from confluent_kafka import Producer as LibrdkafkaProducer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from kohort.client import Admin, TopicPartition
from kohort.client.admin import (
    ConfigResource,
    GroupType,
    NewTopic,
    OffsetSpec,
    PartialFailureError,
    ResetTo,
    ResourceType,
)
from kohort.protocol.errors import ErrorCode, KafkaError

from ...waiting import eventually, run, until
from ..clients import LIBRARIES
from ..clients.face import Message
from ..servers import Server
from ..topics import read_partitions
from .records import numbered, write

CreateTopic = Callable[..., str]
NewName = Callable[[], str]
LIBRDKAFKA = next(library for library in LIBRARIES if library.name == "librdkafka")


@contextmanager
def member(broker: Server, group: str, topic: str, **settings: Any) -> Iterator[Librdkafka]:
    """A member of another library that has all of a topic."""
    config = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "client.id": "another",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Librdkafka(config | settings)
    consumer.subscribe([topic])
    try:
        eventually(lambda: (consumer.poll(0.05), consumer.assignment())[1], what="it has joined")
        yield consumer
    finally:
        consumer.close()


def test_topics_from_beginning_to_end(broker: Server, admin: AdminClient, new_name: NewName) -> None:
    first, second = new_name(), new_name()

    async def scenario() -> None:
        async with Admin(broker.bootstrap) as ours:
            made = await ours.topics.create(
                NewTopic(first, partitions=3, configs={"retention.ms": "60000"}), NewTopic(second, partitions=1)
            )
            assert made[first].partitions == 3
            with pytest.raises(KafkaError) as error:
                await ours.topics.create(first, partitions=1)
            assert error.value.code == ErrorCode.TOPIC_ALREADY_EXISTS
            with pytest.raises(PartialFailureError):
                await ours.topics.create(first, f"{first}-valid", partitions=1, validate_only=True)
            await ours.topics.add_partitions(first, 5)
            assert {first, second} <= set(await ours.topics.list())

            async def enlarged() -> bool:
                return sorted((await ours.topics.describe(first))[first].partitions) == list(range(5))

            await until(enlarged)
            assert len(admin.list_topics(first).topics[first].partitions) == 5
            resource = ConfigResource(ResourceType.TOPIC, first)
            await ours.configs.alter(resource, set={"max.message.bytes": "5000"}, delete=["retention.ms"])

            async def altered() -> bool:  # the controller has, the broker will soon
                return (await ours.configs.describe(resource))[resource]["max.message.bytes"].value == "5000"

            await until(altered)
            configs = (await ours.configs.describe(resource))[resource]
            assert not configs["max.message.bytes"].default
            assert configs["retention.ms"].value == "604800000" and configs["retention.ms"].default
            with pytest.raises(KafkaError) as error:
                await ours.configs.alter(resource, set={"max.message.bytes": "many"})
            assert error.value.code == ErrorCode.INVALID_CONFIG
            await ours.topics.delete(first, second)

            async def gone() -> bool:
                return not {first, second} & set(await ours.topics.list())

            await until(gone)
            with pytest.raises(KafkaError) as error:
                await ours.topics.describe(first, timeout_ms=3000)
            assert error.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())


def test_where_partitions_begin_and_end(broker: Server, new_topic: CreateTopic) -> None:
    topic = new_topic(2)
    LIBRDKAFKA.produce(broker.bootstrap, topic, [Message(b"%d" % n, timestamp=1_000_000 + n) for n in range(50)])
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def scenario() -> None:
        async with Admin(broker.bootstrap) as ours:
            assert await ours.offsets.ends([zero, one]) == {zero: (0, 50), one: (0, 0)}
            found = await ours.offsets.list({zero: 1_000_020})
            assert found[zero][:2] == (20, 1_000_020)
            assert (await ours.offsets.list({zero: OffsetSpec.LATEST}))[zero].offset == 50
            assert await ours.topics.delete_records({zero: 30}) == {zero: 30}
            assert await ours.offsets.ends([zero]) == {zero: (30, 50)}

    run(scenario())


@pytest.mark.parametrize(
    ("broker", "protocol"), [("kohort", "classic"), ("kafka", "classic"), ("kafka", "consumer")], indirect=["broker"]
)
def test_groups_are_seen_reset_and_deleted(
    protocol: str, broker: Server, new_topic: CreateTopic, new_name: NewName
) -> None:
    topic, group = new_topic(2), new_name()
    now = int(time.time() * 1000)
    LIBRDKAFKA.produce(
        broker.bootstrap, topic, [Message(b"%d" % n, timestamp=now - 60_000 * (100 - n)) for n in range(100)]
    )
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    kind = GroupType(protocol)

    async def scenario() -> None:
        async with Admin(broker.bootstrap) as ours:
            with member(broker, group, topic, **{"group.protocol": protocol}) as consumer:
                consumer.commit(offsets=[Place(topic, 0, 40)], asynchronous=False)
                listed = {each.group_id: each for each in await ours.groups.list()}
                assert listed[group].type is kind and listed[group].state == "Stable"
                assert group not in {each.group_id for each in await ours.groups.list(types=["streams"])}
                seen = (await ours.groups.describe(group))[group]
                (one_member,) = seen.members
                assert seen.type is kind and seen.state == "Stable"
                assert one_member.client_id == "another" and set(one_member.partitions) == {zero, one}
                assert (seen.epoch is None) == (protocol == "classic")
                with pytest.raises(KafkaError) as error:
                    await ours.groups.delete(group)
                assert error.value.code == ErrorCode.NON_EMPTY_GROUP
                lag = await ours.group_offsets.lag(group)
                assert (lag[zero].committed, lag[zero].end, lag[zero].lag) == (40, 100, 60)
                with pytest.raises(KafkaError):
                    await ours.group_offsets.reset(group, ResetTo.earliest(), dry_run=False)
            assert (await ours.groups.describe(group))[group].state == "Empty"
            for to, expected in {
                ResetTo.earliest: 0,
                ResetTo.latest: 100,
                lambda: ResetTo.offset(70): 70,
                lambda: ResetTo.shift(-10): 30,
                lambda: ResetTo.time(now - 60_000 * 25 - 30_000): 75,
            }.items():
                planned = await ours.group_offsets.reset(group, to(), partitions=[zero])
                assert planned[zero][:2] == (40, expected)
            assert (await ours.group_offsets.committed(group))[zero].offset == 40  # these were dry runs
            await ours.group_offsets.reset(group, ResetTo.offset(70), partitions=[zero], dry_run=False)
            assert (await ours.group_offsets.committed(group))[zero].offset == 70
            with member(broker, group, topic, **{"group.protocol": protocol}) as consumer:
                assert eventually(lambda: consumer.poll(0.1)).offset() >= 70
            await ours.group_offsets.delete(group, [zero])
            assert zero not in await ours.group_offsets.committed(group)
            await ours.groups.delete(group)
            with pytest.raises(KafkaError) as error:
                await ours.groups.describe(group)
            assert error.value.code == ErrorCode.GROUP_ID_NOT_FOUND

    run(scenario())


def test_transactions_that_hang_are_found_and_aborted(
    broker: Server, new_topic: CreateTopic, new_name: NewName
) -> None:
    topic, name = new_topic(), new_name()
    place = TopicPartition(topic, 0)
    write(broker.bootstrap, topic, numbered(1, 5))
    hanging = LibrdkafkaProducer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    hanging.init_transactions(20)
    hanging.begin_transaction()
    hanging.produce(topic, b"in doubt", partition=0)
    assert hanging.flush(20) == 0

    async def scenario() -> None:
        async with Admin(broker.bootstrap) as ours:
            listed = {each.transactional_id: each for each in await ours.transactions.list(states=["Ongoing"])}
            described = (await ours.transactions.describe(name))[name]
            assert described.state == listed[name].state == "Ongoing"
            assert described.partitions == (place,)
            states = (await ours.transactions.producers(place))[place]
            (state,) = (each for each in states if each.producer_id == described.producer_id)
            assert state.transaction_start == 5
            await ours.transactions.abort(place, state)
            (state,) = (
                each
                for each in (await ours.transactions.producers(place))[place]
                if each.producer_id == described.producer_id
            )
            assert state.transaction_start == -1
            await ours.transactions.fence(name)

    run(scenario())
    assert read_partitions(broker.bootstrap, topic, 1)[0] == numbered(1, 5)[0]


def test_the_cluster_itself(broker: Server, admin: AdminClient) -> None:
    async def scenario() -> None:
        async with Admin(broker.bootstrap) as ours:
            seen = await ours.cluster.describe()
            theirs = admin.describe_cluster().result(20)
            assert seen.cluster_id == theirs.cluster_id
            assert [(each.node_id, f"{each.host}:{each.port}") for each in seen.brokers] == [
                (theirs.nodes[0].id, broker.bootstrap)
            ]
            features = await ours.cluster.features()
            assert features.finalized["transaction.version"] == 2
            assert await ours.cluster.log_dirs()

    run(scenario())
