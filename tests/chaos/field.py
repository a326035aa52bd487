"""Where it happens: a broker, the topics, instances, and flights that keep coming."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kohort.testing import BrokerProcess

from .instances import Instance
from .results import FlightDelays
from .scenarios import APPLICATION, Delivered, Record, Scenario

__all__ = ["APPLICATION", "PARTITIONS", "SESSION_MS", "Field", "Server", "apache_kafka", "kfake", "kohort_broker"]

PARTITIONS = 4
SESSION_MS = 4_000


class Server(Protocol):
    """A broker that can be killed and comes back with what it had."""

    @property
    def bootstrap_servers(self) -> str:
        """Its address."""

    def kill(self) -> None:
        """As a crash does."""

    def start(self) -> None:
        """On the same data and port."""


_GROUPS = {
    "group.streams.min.session.timeout.ms": 1_000, "group.streams.session.timeout.ms": SESSION_MS,
    "group.streams.min.heartbeat.interval.ms": 100, "group.streams.heartbeat.interval.ms": 500,
    "group.streams.assignment.interval.ms": 0, "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.task.offset.interval.ms": 500, "group.streams.task.offset.interval.ms": 1_000,
    "group.share.min.session.timeout.ms": 1_000, "group.share.session.timeout.ms": SESSION_MS,
    "group.share.min.heartbeat.interval.ms": 100, "group.share.heartbeat.interval.ms": 500,
    "group.share.min.record.lock.duration.ms": 1_000, "group.share.record.lock.duration.ms": SESSION_MS,
    "group.share.delivery.count.limit": 10,  # so that workers' deaths alone don't use up a job's deliveries
    "group.min.session.timeout.ms": 1_000, "group.initial.rebalance.delay.ms": 0,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1_000,
}  # fmt: skip


@contextmanager
def kohort_broker() -> Iterator[Server]:
    """Kohort's."""
    with BrokerProcess(_GROUPS) as broker:
        yield broker


@contextmanager
def kfake() -> Iterator[Server]:
    """franz-go's broker for tests, which isn't Apache's."""
    from tests.interop.kfake import Kfake

    class Fake(Kfake):
        @property
        def bootstrap_servers(self) -> str:
            return self.bootstrap

    with tempfile.TemporaryDirectory(prefix="kohort-kfake-") as directory:
        node = Fake(Path(directory) / "node")
        node.start()
        try:
            yield node
        finally:
            if node.process is not None:
                node.kill()


@contextmanager
def apache_kafka(version: str) -> Iterator[Server]:
    """Apache Kafka: "4.4", the newest there is, or one without streams groups."""
    from tests.interop.newest_kafka import NewestKafka
    from tests.interop.older_kafka import OlderKafka

    class Newest(NewestKafka):
        @property
        def bootstrap_servers(self) -> str:
            return self.bootstrap

    class Older(OlderKafka):
        @property
        def bootstrap_servers(self) -> str:
            return self.bootstrap

    with tempfile.TemporaryDirectory(prefix="kohort-kafka-") as directory:
        home, settings = Path(directory) / "node", {key: str(value) for key, value in _GROUPS.items()}
        node = Newest(home, settings) if version == "4.4" else Older(home, version, settings)
        node.start()
        try:
            yield node
        finally:
            if node.process is not None:
                node.kill()


class Field:
    """A broker with the application's topics, and the records that were sent so far.

    Attributes:
        delivered: those that the broker has, and where; without those that were there before the application.
    """

    def __init__(
        self, server: Server, directory: Path, group_protocol: str = "streams", scenario: Scenario | None = None
    ) -> None:
        self._scenario = scenario or FlightDelays()
        self.server, self._options = server, ["--group-protocol", group_protocol, "--program", self._scenario.name]
        if group_protocol != "streams":
            self._options += ["--session-timeout-ms", str(SESSION_MS)]
        self.directory = directory
        self.delivered: list[Delivered] = []
        self._stack = ExitStack()
        self._instances: list[Instance] = []
        self._failed: list[KafkaError] = []
        servers = server.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        names = (*self._scenario.inputs, *self._scenario.outputs)
        for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
            made.result()
        self._producer = Producer({
            "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 20, "log_level": 0,
            "partitioner": "murmur2_random", "delivery.timeout.ms": 120_000,
        })  # fmt: skip
        for record in self._scenario.first():
            self._producer.produce(record.topic, record.value, record.key)
        self._producer.flush()
        self.results = self._scenario.outcome(servers, PARTITIONS)
        self._stack.callback(self.results.close)

    def close(self) -> None:
        """Kill the instances that run."""
        self._stack.close()

    def instance(self, name: str, *options: str) -> Instance:
        """Start an instance; it's killed in the end, if it still runs."""
        given = ("--application-id", APPLICATION, *self._options, *options)
        made = Instance(self.directory / name, self.server.bootstrap_servers, *given)
        self._instances.append(self._stack.enter_context(made))
        return made

    def send(self, seed: int, number: int, seconds: float) -> Iterator[float]:
        """Send records evenly over some time, and give the seconds that have passed, a few times a second."""
        began = time.monotonic()
        records = self._scenario.made_up(seed, number)
        sent = 0
        while sent < len(records):
            passed = time.monotonic() - began
            due = min(len(records), int(len(records) * passed / seconds) + 1)
            self._produce(records[sent:due])
            sent = due
            self._producer.poll(0.1)
            self.results.read(0.05)
            yield passed

    def settle(self, patience: float) -> list[str]:
        """Wait until the output has come of all records that were sent, and say where it isn't what it should be."""
        if differences := self._settled(patience):
            return differences
        for ending in self._scenario.endings():
            self._produce(ending)
            if differences := self._settled(patience):
                return differences
        return []

    def summary(self) -> str:
        """What was compared."""
        return self.results.summary(self.delivered)

    def _settled(self, patience: float) -> list[str]:
        if left := self._producer.flush(patience):
            return [f"{left} records couldn't be sent"]
        if self._failed:
            return [f"{len(self._failed)} records couldn't be sent: {self._failed[0]}"]
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and any(instance.runs for instance in self._instances):
            self.results.read()
            if not self.results.differences(self.delivered):
                self.results.read(2)  # and nothing follows that changes it
                break
        return self.results.differences(self.delivered)

    def _produce(self, records: Sequence[Record]) -> None:
        for record in records:
            self._producer.produce(record.topic, record.value, record.key, on_delivery=partial(self._told, record))

    def _told(self, record: Record, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failed.append(error)
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None and offset is not None
        self.delivered.append(Delivered(partition, offset, record))
