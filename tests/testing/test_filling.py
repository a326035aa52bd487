"""Topics with records, and groups that lag behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kohort.client import Admin, Consumer
from kohort.client.admin import ConfigResource, ResourceType
from kohort.client.config import Servers
from kohort.client.errors import NoBrokerError
from kohort.client.types import TopicPartition
from kohort.protocol.errors import KafkaError
from kohort.testing import Broker, BrokerProcess, Filling, KohortContainer, NewRecord

from ..waiting import run


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def filling(broker: Broker, request: pytest.FixtureRequest) -> Filling:
    return Filling(broker, request.node.name)


def read(servers: Servers, topic: str, count: int) -> list[Any]:
    """So many records of a topic, by partition and offset."""

    async def main() -> list[Any]:
        async with Admin(servers) as admin, Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign(await admin.topics.partitions([topic]))
            found: list[Any] = []
            while len(found) < count:
                found += await consumer.poll()
            return sorted(found, key=lambda record: (record.partition, record.offset))

    return run(main())


def lag(broker: Broker, group: str) -> dict[TopicPartition, tuple[int | None, int | None]]:
    """Committed offset and lag by partition."""

    async def main() -> dict[TopicPartition, tuple[int | None, int | None]]:
        async with Admin(broker.bootstrap_servers) as admin:
            return {at: (each.committed, each.lag) for at, each in (await admin.group_offsets.lag(group)).items()}

    return run(main())


def test_a_topic_has_what_is_written_down(broker: Broker, filling: Filling) -> None:
    topic = filling.topic(
        [{"id": 1}, ("b", b"two"), NewRecord("three", "c", timestamp_ms=5, partition=1, headers={"trace": b"x"})],
        partitions=2,
        key="id",
    )
    found = {record.key: record for record in read(broker.bootstrap_servers, topic, 3)}
    assert {key: record.value for key, record in found.items()} == {b"1": b'{"id":1}', b"b": b"two", b"c": b"three"}
    assert (found[b"c"].partition, found[b"c"].timestamp, [*found[b"c"].headers]) == (1, 5, [("trace", b"x")])


def test_a_topic_has_what_a_file_has(broker: Broker, filling: Filling, tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text("id,item\n1,tea\n2,cups\n")
    records = read(broker.bootstrap_servers, filling.topic(tmp_path / "orders.csv", key="id"), 2)
    assert [(record.key, record.value) for record in records] == [
        (b"1", b'{"id":"1","item":"tea"}'),
        (b"2", b'{"id":"2","item":"cups"}'),
    ]


def test_names_are_made_up_and_are_all_different(filling: Filling) -> None:
    made = [filling.topic(), filling.topic(), filling.group(filling.topic(name="a-name-of-its-own"))]
    assert len(set(made)) == 3
    assert all(name.startswith("test_names_are_made_up") for name in made)


def test_a_topic_has_settings(broker: Broker, filling: Filling) -> None:
    topic = filling.topic(configs={"cleanup.policy": "compact", "preallocate": True})

    async def main() -> dict[str, str | None]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        async with Admin(broker.bootstrap_servers) as admin:
            entries = (await admin.configs.describe(resource))[resource]
            return {name: entries[name].value for name in ("cleanup.policy", "preallocate")}

    assert run(main()) == {"cleanup.policy": "compact", "preallocate": "true"}


def test_a_name_that_is_taken_is_refused(filling: Filling) -> None:
    with pytest.raises(KafkaError, match="taken"):
        filling.topic(name=filling.topic(name="taken"))


def test_a_group_lags_behind(broker: Broker, filling: Filling) -> None:
    topic = filling.topic([NewRecord(partition=0)] * 5 + [NewRecord(partition=1)] * 2, partitions=3)
    places = [TopicPartition(topic, number) for number in range(3)]
    assert lag(broker, filling.group(topic, behind=3)) == dict(zip(places, [(2, 3), (0, 2), (0, 0)], strict=True))
    assert lag(broker, filling.group(topic)) == dict(zip(places, [(5, 0), (2, 0), (0, 0)], strict=True))
    with pytest.raises(ValueError, match="behind=-1"):
        filling.group(topic, behind=-1)


def test_a_group_is_not_behind_by_more_than_there_is(filling: Filling) -> None:
    topic = filling.topic([b"1", b"2"])
    with pytest.raises(ValueError, match=f"behind=3 .* none of {topic} has more than 2"):
        filling.group(topic, 3)


def test_a_group_with_members_is_left_alone(broker: Broker, filling: Filling) -> None:
    topic = filling.topic([b"1"])

    async def main() -> None:
        async with Consumer(broker.bootstrap_servers, group_id="live", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            while not await consumer.poll():
                pass
            with pytest.raises(KafkaError, match="the group live has members: close its consumers first"):
                await asyncio.to_thread(filling.group, topic, behind=1, name="live")

    run(main())


def test_records_without_keys_take_turns(broker: Broker, filling: Filling) -> None:
    topic = filling.topic([b"0", b"1", NewRecord(b"fixed", partition=0), b"2", b"3", (None, b"4")], partitions=3)
    found = read(broker.bootstrap_servers, topic, 6)
    assert [(each.partition, each.value) for each in found] == [
        *[(0, value) for value in (b"0", b"fixed", b"3")], (1, b"1"), (1, b"4"), (2, b"2"),
    ]  # fmt: skip


def test_a_topic_has_as_many_partitions_as_the_broker_says() -> None:
    with Broker({"num.partitions": 3}) as broker:
        filling = Filling(broker, "spread")
        topic = filling.topic([b"0", b"1", b"2"])
        assert [each.partition for each in read(broker.bootstrap_servers, topic, 3)] == [0, 1, 2]
        assert len(lag(broker, filling.group(topic))) == 3


def test_within_an_event_loop(broker: Broker, filling: Filling) -> None:
    async def main() -> str:
        return filling.topic([b"tea"])

    assert len(read(broker.bootstrap_servers, asyncio.run(main()), 1)) == 1


@pytest.mark.parametrize("kind", [Broker, BrokerProcess])
def test_a_secured_broker_is_filled_by_its_first_user(kind: type[Broker | BrokerProcess]) -> None:
    with kind(secure=True) as broker:
        topic = Filling(broker, "secured").topic([b"tea"])
        assert [record.value for record in read(broker.security.admin.config, topic, 1)] == [b"tea"]


JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice='tea';"


@pytest.mark.parametrize("kind", [Broker, BrokerProcess])
def test_who_may_get_in_has_to_be_known(kind: type[Broker | BrokerProcess]) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    }
    with kind(settings) as broker:
        filling = Filling(broker, "refused")
        with pytest.raises(ValueError, match=r"listener is of SASL_PLAINTEXT, .* kohort_secure_broker or .* first"):
            filling.topic()
        with pytest.raises(ValueError, match=r"listener is of SASL_PLAINTEXT"):
            filling.group("orders")


def test_the_first_listener_is_the_one_that_is_filled() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
    }
    with Broker(settings) as broker:
        topic = Filling(broker, "filled").topic([b"tea"])
        assert [record.value for record in read(broker.bootstrap_servers, topic, 1)] == [b"tea"]


def test_a_container_is_filled() -> None:
    with KohortContainer() as container:
        topic = Filling(container, "contained").topic([b"tea"])
        assert [record.value for record in read(container.get_bootstrap_server(), topic, 1)] == [b"tea"]


def test_a_broker_that_says_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.testing.filling.PATIENCE_MS", 200)
    with socket.create_server(("127.0.0.1", 0)) as silent, Broker() as running:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(Broker, "bootstrap_servers", address)
        with pytest.raises(NoBrokerError, match="within 200 ms"):
            Filling(running, "silent").topic()
