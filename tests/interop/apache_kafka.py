"""Apache Kafka itself, one node in KRaft mode: the witness for what our tests ask, and the benchmark's peer."""

from __future__ import annotations

import contextlib
import hashlib
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

from .built_once import built_once
from .java import build, jvm
from .servers import Server

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
OWN_FLAGS = (
    "-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip
"""The JVM's flags in Kafka's own start script."""


class ApacheKafka(Server):
    """A broker that is its own controller, made from the jars that Maven fetched.

    Args:
        directory: for its data and what it prints; must not be another server's.
        settings: what differs from Kafka's defaults, beside addresses, directories and what one node needs.
        flags: the JVM's; by default those of a small, short-lived one.
    """

    ready_within = 180.0
    clean_exit = 143  # a JVM's, after SIGTERM
    project = "kafka"  # whose class path it runs on
    format_options: tuple[str, ...] = ()  # beside the cluster's id and the settings

    def __init__(
        self, directory: Path, settings: Mapping[str, str] | None = None, flags: tuple[str, ...] = jvm.FLAGS
    ) -> None:
        super().__init__(directory, settings)
        self.flags = flags
        self.properties = directory / "server.properties"

    def format(self) -> None:
        """Choose free ports and prepare the data directory; a start does so if nobody did."""
        settings = (
            self.addresses()
            | {
                "log.dirs": str(self.data_dir),
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            }
            | self.settings
        )
        if self.flags == jvm.FLAGS:
            settings.setdefault("log.cleaner.dedupe.buffer.size", str(4 << 20))
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self.prepare_data()

    def prepare_data(self) -> None:
        """Make the data directory of a member of the cluster: a copy of one that its storage tool made once.

        The tool's JVM would take longer than the rest of a start. What it writes depends on the version, and on what
        it is told, but on no port or folder.
        """
        told = [
            *self.format_options,
            *sorted(f"{k}={v}" for k, v in self.settings.items() if k.startswith("unstable.")),
        ]
        told_hash = hashlib.sha256("\0".join(told).encode()).hexdigest()[:8]
        prepared = built_once(
            build.CACHE,
            f"data_{told_hash}_{self.project}",
            [(build.HERE / self.project / "pom.xml").read_bytes()],
            self._run_storage_tool,
        )
        shutil.copytree(prepared, self.data_dir)

    def _run_storage_tool(self, target: Path) -> None:
        text = self.properties.read_text().replace(f"log.dirs={self.data_dir}\n", f"log.dirs={target}\n")
        with tempfile.TemporaryDirectory() as directory:
            properties = Path(directory) / "server.properties"
            properties.write_text(text)
            tool = self._java(jvm.FLAGS, "kafka.tools.StorageTool")
            done = subprocess.run(
                [*tool, "format", "--cluster-id", CLUSTER_ID, "--config", str(properties), *self.format_options],
                capture_output=True,
                text=True,
            )
        assert done.returncode == 0, done.stderr

    def addresses(self) -> dict[str, str]:
        """What it is to the cluster, and the free ports it shall listen on."""
        self.port, controller = free_ports(2)
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{self.host}:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{self.host}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
        }

    def command(self) -> list[str]:
        if not self.properties.exists():
            self.format()
        return [*self._java(self.flags, "kafka.Kafka"), str(self.properties)]

    def ready(self) -> bool:
        return serves_metadata(self.host, self.port)

    def _java(self, flags: tuple[str, ...], main: str) -> list[str]:
        return ["java", *flags, "-cp", build.classpath(self.project), main]


def free_ports(number: int) -> list[int]:
    """Ports that nobody listened on a moment ago.

    They are none of those that the system gives to connections: while a broker is down, nobody else gets its port, and
    a client that tries to reach it there can't be connected to itself.
    """
    with ExitStack() as listening:
        ports: list[int] = []
        while len(ports) < number:
            port = random.randrange(10_000, 32_000)
            with contextlib.suppress(OSError):
                listening.enter_context(socket.create_server(("127.0.0.1", port)))
                ports.append(port)
        return ports


def serves_metadata(host: str, port: int) -> bool:
    """Whether a broker answers, and names itself among the brokers there are."""
    version = 12
    message = RequestHeader(request_api_key=3, request_api_version=version, correlation_id=1, client_id="ready").encode(
        2
    )
    message += MetadataRequest(topics=[]).encode(version)
    try:
        with socket.create_connection((host, port), timeout=5) as connection, connection.makefile("rwb") as stream:
            stream.write(len(message).to_bytes(4, "big") + message)
            stream.flush()
            answer = stream.read(int.from_bytes(stream.read(4), "big"))
    except OSError:
        return False
    if not answer:
        return False
    _, end = ResponseHeader.read(answer, 0, 1)
    response, _ = MetadataResponse.read(answer, end, version)
    return any(broker.port == port for broker in response.brokers)
