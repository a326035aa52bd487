"""The two servers, started alike and timed until they answer."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from tests.interop.apache_kafka import OWN_FLAGS, ApacheKafka, free_ports, serves_metadata
from tests.interop.newest_kafka import NewestKafka
from tests.interop.servers import KohortServer, Server

# Members that join are answered as soon as all known ones have joined; all else is the servers' own default.
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
ONE_NODE = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Peer:
    """A server under test."""

    def __init__(self, name: str, server: Server, settings: Mapping[str, str] = SETTINGS) -> None:
        self.name = name
        self.server = server
        server.settings = dict(settings)

    def start(self) -> float:
        """Seconds from the start of the process to its first answer to a metadata request."""
        if isinstance(self.server, ApacheKafka):
            self.server.format()  # as installing it would, before the clock runs
        else:
            (self.server.port,) = free_ports(1)
        command = self.server.command()
        # Python keeps compiled modules unless it is told not to, as in some containers; Kafka's jars are compiled, too.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with self.server.said.open("wb") as out, self.server.complained.open("wb") as err:
            started = time.perf_counter()
            self.server.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment
            )
        while not serves_metadata(self.server.host, self.server.port):
            if time.perf_counter() - started > self.server.ready_within:
                raise TimeoutError(f"{self.name} isn't ready:\n{self.server.stderr()}")
            time.sleep(0.001)
        return time.perf_counter() - started

    @property
    def bootstrap(self) -> str:
        """Its address, as clients want it."""
        return self.server.bootstrap

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.server.pid

    def stop(self) -> None:
        """Kill it; its data are thrown away anyway."""
        if self.server.process is not None:
            self.server.kill()


def kohort(directory: Path) -> Peer:
    return Peer("Kohort", KohortServer(directory / "kohort"))


def kafka(directory: Path) -> Peer:
    return Peer("Apache Kafka", ApacheKafka(directory / "kafka", flags=OWN_FLAGS))


def newest_kafka(directory: Path) -> Peer:
    """The newest Apache Kafka, with what one node needs to serve share groups alone."""
    server = ApacheKafka(directory / "newest-kafka", flags=OWN_FLAGS)
    server.project = NewestKafka.project
    return Peer("Apache Kafka", server, SETTINGS | ONE_NODE)
