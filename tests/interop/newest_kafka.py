"""The newest Apache Kafka, for Kohort's client: one node, a node with TLS and SASL, and a cluster of three."""

from __future__ import annotations

import base64
import functools
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from ..waiting import eventually
from .apache_kafka import CLUSTER_ID, ApacheKafka, free_ports
from .built_once import built_once
from .java import build
from .secured import PASSWORD, SCRAM_MECHANISMS, SECURE_PROTOCOLS, USER, House
from .servers import QUICK_KRAFT

# Groups of the newer protocols are as quick as the classic ones, and a node is small.
QUICK_GROUPS = {
    f"group.{kind}.{key}": value
    for kind in ("consumer", "streams", "share")
    for key, value in {
        "min.heartbeat.interval.ms": "100",
        "heartbeat.interval.ms": "300",
        "min.session.timeout.ms": "1000",
        "session.timeout.ms": "6000",
    }.items()
}
SMALL = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),
    "num.network.threads": "2",
    "num.io.threads": "2",
    "background.threads": "2",
}
FLAGS = (
    "-Xms96m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)  # fmt: skip
QUIET_ARCHIVE = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""What the JVM says of an archive that doesn't fit is nothing that can be helped here."""


class NewestKafka(ApacheKafka):
    """A node that is broker and controller.

    Args:
        directory: for its data and what it prints; must not be another server's.
        settings: what differs from quick ones.
    """

    project = "newest_kafka"

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, QUICK_GROUPS | SMALL | dict(settings or {}), FLAGS)

    def command(self) -> list[str]:
        """As of the base class, with an archive of the classes that a node loads: its start takes half of the time."""
        java, *arguments = super().command()
        return [java, f"-XX:SharedArchiveFile={class_archive()}", *QUIET_ARCHIVE, *arguments]


class Training(ApacheKafka):
    """A node that archives its classes when it ends.

    Args:
        directory: for its data and what it prints; must not be another server's.
        archive: the file.
    """

    project = NewestKafka.project

    def __init__(self, directory: Path, archive: Path) -> None:
        super().__init__(directory, QUICK_GROUPS | SMALL, (*FLAGS, f"-XX:ArchiveClassesAtExit={archive}"))


@functools.cache
def class_archive() -> Path:
    """The classes of a node, archived once for a version of Kafka and of Java by the first process that asks."""

    def train(target: Path) -> None:
        target.mkdir()
        with tempfile.TemporaryDirectory() as directory:
            node = Training(Path(directory) / "node", target / "classes.jsa")
            node.start()
            node.stop()

    java = subprocess.run(["java", "-version"], capture_output=True, check=True).stderr
    inputs = [build.classpath(Training.project).encode(), java]
    return built_once(build.CACHE, f"archive_{Training.project}", inputs, train) / "classes.jsa"


class Kafka42(NewestKafka):
    """Apache Kafka 4.2, the first one with share groups by default and renewed locks: a node as of the base class."""

    project = "kafka"

    def command(self) -> list[str]:
        """As of `ApacheKafka`: a JVM archives no classes where some of them lie in a folder, as ours here."""
        return ApacheKafka.command(self)


class SecureKafka(NewestKafka):
    """A node that also listens with TLS and SASL; its transactions are those of older clusters."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.house = House(directory)
        pem = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
        super().__init__(directory, self.house.settings | pem | dict(settings or {}))
        self.flags = FLAGS + self.house.java_flags
        self.ports = dict(zip(SECURE_PROTOCOLS, free_ports(3), strict=True))
        self.format_options = (
            "--feature=transaction.version=1",
            *(f"--add-scram={mechanism}=[name={USER},password={PASSWORD}]" for mechanism in SCRAM_MECHANISMS),
        )

    def addresses(self) -> dict[str, str]:
        """As of the base class, with three listeners more."""
        found = super().addresses()
        for protocol, port in self.ports.items():
            for key in ("listeners", "advertised.listeners"):
                found[key] += f",{protocol}://localhost:{port}"
        return found


class ClusterNode(NewestKafka):
    """One of a cluster; the first is its controller, too."""

    def __init__(self, directory: Path, node_id: int, controller_port: int) -> None:
        super().__init__(
            directory,
            QUICK_KRAFT
            | {
                "broker.session.timeout.ms": "2000",
                "min.insync.replicas": "2",
                "offsets.topic.replication.factor": "3",
                "transaction.state.log.replication.factor": "3",
                "transaction.state.log.min.isr": "2",
                "share.coordinator.state.topic.replication.factor": "3",
                "share.coordinator.state.topic.min.isr": "2",
                "replica.lag.time.max.ms": "2000",
            },
        )
        self.node_id, self.controller_port = node_id, controller_port

    def addresses(self) -> dict[str, str]:
        """As of the base class, with a controller shared by all."""
        (self.port,) = free_ports(1)
        controls = self.node_id == 1
        listeners = f"PLAINTEXT://{self.bootstrap}"
        return {
            "process.roles": "broker,controller" if controls else "broker",
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"1@{self.host}:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://{self.host}:{self.controller_port}" if controls else listeners,
            "advertised.listeners": listeners,
        }

    def prepare_data(self) -> None:
        """As of the base class; but one that only follows the controller is prepared without a JVM."""
        if self.node_id == 1:
            super().prepare_data()
            return
        self.data_dir.mkdir()
        identity = {
            "version": "1",
            "cluster.id": CLUSTER_ID,
            "node.id": str(self.node_id),
            "directory.id": base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="),
        }
        text = "".join(f"{key}={value}\n" for key, value in identity.items())
        (self.data_dir / "meta.properties").write_text(text)


class KafkaCluster:
    """Three brokers: topics have three replicas, and two must be in sync. Broker 2 or 3 may be killed, 1 controls."""

    def __init__(self, directory: Path) -> None:
        (port,) = free_ports(1)
        self.nodes = {node: ClusterNode(directory / f"node-{node}", node, port) for node in (1, 2, 3)}

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    @contextmanager
    def running(self) -> Iterator[KafkaCluster]:
        """The cluster, started; ended with the block."""
        with ExitStack() as stack:
            for node in self.nodes.values():
                stack.callback(kill, node)
            for node in self.nodes.values():
                node.format()
            with ThreadPoolExecutor(3) as together:
                list(together.map(ApacheKafka.start, self.nodes.values()))
            admin = AdminClient({"bootstrap.servers": self.bootstrap})
            eventually(lambda: len(admin.list_topics(timeout=20).brokers) == 3, what="all three have registered")
            yield self


@contextmanager
def running(node: NewestKafka) -> Iterator[NewestKafka]:
    """A node, started; killed with the block: it has nothing to save."""
    try:
        node.start()
        yield node
    finally:
        kill(node)


def kill(node: NewestKafka) -> None:
    """End it, if it runs."""
    if node.process is not None:
        node.kill()
