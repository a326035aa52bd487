"""Share groups of librdkafka's ShareConsumer: acknowledged both ways, released, rejected, and through kill -9."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ..waiting import eventually
from .servers import Server
from .topics import create_topic

TOPIC, GROUP = "jobs", "workers"
QUICK = {
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "300",
    "share.coordinator.state.topic.num.partitions": "4",
}
pytestmark = pytest.mark.parametrize("own_server", [QUICK], indirect=True)


@pytest.fixture
def server(own_server: Server) -> Server:
    """A server with a topic, which the group shares from its beginning."""
    admin = AdminClient({"bootstrap.servers": own_server.bootstrap})
    create_topic(admin, TOPIC, 3)
    configure(admin, **{"share.auto.offset.reset": "earliest"})
    return own_server


def configure(admin: AdminClient, **configs: str) -> None:
    """Sets configurations of the group."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()]
    resource = ConfigResource(ResourceType.GROUP, GROUP, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(20)


def produce(server: Server, values: range) -> None:
    producer = Producer({"bootstrap.servers": server.bootstrap})
    for value in values:
        producer.produce(TOPIC, b"%d" % value)
    assert producer.flush(20) == 0


@contextmanager
def member(server: Server, mode: str) -> Iterator[ShareConsumer]:
    consumer = ShareConsumer(
        {"bootstrap.servers": server.bootstrap, "group.id": GROUP, "share.acknowledgement.mode": mode}
    )
    consumer.subscribe([TOPIC])
    try:
        yield consumer
    finally:
        consumer.close()


def poll(consumer: ShareConsumer) -> list[Message]:
    messages = list(consumer.poll(0.5))
    for message in messages:
        assert message.error() is None, message.error()
    return messages


def number(message: Message) -> int:
    value = message.value()
    assert value is not None
    return int(value)


def committed(consumer: ShareConsumer) -> None:
    """Commits what was acknowledged, which must succeed."""
    errors = {str(place): error for place, error in consumer.commit_sync(20).items() if error is not None}
    assert errors == {}


def test_each_record_is_given_once_if_it_is_accepted(server: Server) -> None:
    produce(server, range(200))
    found: Counter[int] = Counter()
    for mode, end in (("implicit", 200), ("explicit", 400)):
        with member(server, mode) as consumer:

            def more(consumer: ShareConsumer = consumer, mode: str = mode) -> int:
                for message in poll(consumer):
                    found[number(message)] += 1
                    assert message.delivery_count() == 1
                    if mode == "explicit":
                        consumer.acknowledge(message)
                return len(found)

            eventually(lambda: more() == end, what=f"{end} records", within=20)  # noqa: B023
            committed(consumer)
        produce(server, range(200, 400))
    assert set(found.values()) == {1}


def test_what_is_released_comes_again_and_what_is_rejected_does_not(server: Server) -> None:
    produce(server, range(30))
    deliveries: Counter[int] = Counter()
    with member(server, "explicit") as consumer:

        def step() -> bool:
            for message in poll(consumer):
                value = number(message)
                deliveries[value] += 1
                assert message.delivery_count() == deliveries[value]
                again = value % 3 == 0 and deliveries[value] < 3
                rejected = AcknowledgeType.REJECT if value % 3 == 1 else AcknowledgeType.ACCEPT
                consumer.acknowledge(message, AcknowledgeType.RELEASE if again else rejected)
            committed(consumer)
            return sum(deliveries.values()) >= 50

        eventually(step, what="all are delivered as often as they should be", within=20)
        assert not poll(consumer)
    assert deliveries == {value: 3 if value % 3 == 0 else 1 for value in range(30)}


def test_what_a_member_leaves_behind_is_given_to_another(server: Server) -> None:
    produce(server, range(30))
    first: list[int] = []
    with member(server, "explicit") as consumer:

        def take() -> bool:
            for message in poll(consumer):
                if number(message) < 10:
                    first.append(number(message))
                    consumer.acknowledge(message)
                else:
                    consumer.acknowledge(message, AcknowledgeType.RELEASE)
            committed(consumer)
            return len(first) == 10

        eventually(take, what="the first ten", within=20)
    second: set[int] = set()
    with member(server, "implicit") as consumer:

        def rest() -> bool:
            second.update(map(number, poll(consumer)))
            return len(second) >= 20

        eventually(rest, what="the others", within=20)
    assert (sorted(first), sorted(second)) == (list(range(10)), list(range(10, 30)))


@pytest.mark.long
def test_nothing_acknowledged_is_seen_again_after_kill_9(server: Server) -> None:
    """Three members; what they are told is acknowledged must never come again, and all has to come."""
    total = 6_000
    lock = threading.Lock()
    done: set[int] = set()
    seen_again: list[int] = []
    stop = threading.Event()

    def work() -> None:
        with member(server, "explicit") as consumer:
            while not stop.is_set():
                batch = [message for message in consumer.poll(0.2) if message.error() is None]
                with lock:
                    seen_again.extend(number(message) for message in batch if number(message) in done)
                for message in batch:
                    consumer.acknowledge(message)
                results = consumer.commit_sync(20)
                fine = {(place.topic, place.partition) for place, error in results.items() if error is None}
                with lock:
                    done.update(number(message) for message in batch if (message.topic(), message.partition()) in fine)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for part in range(3):
            produce(server, range(part * total // 3, (part + 1) * total // 3))
            least = (2 * part + 1) * total // 6
            eventually(lambda: len(done) >= least, what="half of them", within=60)  # noqa: B023
            server.kill()
            server.restart()
        eventually(lambda: len(done) == total, what="all are acknowledged", within=120)
    finally:
        stop.set()
        for worker in workers:
            worker.join(60)
    assert seen_again == []
