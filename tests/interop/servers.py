"""Brokers in child processes: Kohort, and Apache Kafka behind the same face, to prove the tests themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from ..waiting import eventually

# Records of tests are of any time: nobody looks for those that are too old to be kept.
KEPT = {"log.retention.check.interval.ms": "86400000", "log.initial.task.delay.ms": "86400000"}
# What makes tests quick: no waiting for members to gather, short sessions, few partitions to load.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}
# Heartbeats and sessions of consumer groups, and how often partitions are assigned: a group of three soon rests.
QUICK_CONSUMER_GROUPS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.assignment.interval.ms": "100",
}
# Apache Kafka's controller forgets a broker that was killed this much sooner, and lets it start again.
QUICK_KRAFT = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}


class Server(ABC):
    """A broker with a directory of its own: started, killed, started again on the same port with the same data."""

    ready_within = 60.0
    clean_exit = 0

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.data_dir = directory / "data"
        self.settings = KEPT | QUICK | dict(settings or {})
        self.host, self.port = "127.0.0.1", 0
        self.said = directory / "stdout.txt"
        self.complained = directory / "stderr.txt"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @abstractmethod
    def command(self) -> list[str]: ...

    def environment(self) -> dict[str, str]:
        """The tests' own, without what would be settings to Kohort."""
        return {key: value for key, value in os.environ.items() if not key.startswith("KOHORT_")}

    @abstractmethod
    def ready(self) -> bool: ...

    def start(self) -> None:
        assert self.process is None
        with self.said.open("wb") as out, self.complained.open("ab") as err:
            self.process = subprocess.Popen(
                self.command(), env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        try:
            eventually(self._ready_or_dead, within=self.ready_within, what="the server is ready")
        except BaseException:
            self.kill()
            raise

    def _ready_or_dead(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"exited with {self.process.returncode}:\n{self.stderr()}"
        return self.ready()

    def kill(self) -> None:
        """As `kill -9` does."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """On the same port and data, whether it runs or not."""
        if self.process is not None:
            self.kill()
        self.start()

    def stop(self) -> None:
        """SIGTERM, and the clean end that it must bring."""
        code = self._end(signal.SIGTERM)
        assert code == self.clean_exit, f"exit code {code} after SIGTERM:\n{self.stderr()}"

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        process, self.process = self.process, None
        process.send_signal(number)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def stderr(self, since: int = 0) -> str:
        """What it has written to its standard error, from that byte on."""
        with self.complained.open("rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")


class KohortServer(Server):
    """`kohort serve` on a free port."""

    def command(self) -> list[str]:
        settings = [f"--set={key}={value}" for key, value in self.settings.items()]
        where = ["--listen", f"{self.host}:{self.port}", "--data-dir", str(self.data_dir)]
        return [sys.executable, "-m", "kohort.cli", "serve", *where, *settings]

    def ready(self) -> bool:
        for line in self.said.read_text().splitlines(keepends=True):
            if line.startswith("kohort ready on ") and line.endswith("\n"):
                self.port = int(line.split()[3].rpartition(":")[2])  # of the first listener
                return True
        return False


def new_server(directory: Path, settings: Mapping[str, str] | None = None) -> Server:
    """A server, started: Kohort, or with KOHORT_INTEROP_AGAINST=kafka Apache Kafka."""
    if os.environ.get("KOHORT_INTEROP_AGAINST", "kohort") == "kafka":
        from .apache_kafka import ApacheKafka

        server: Server = ApacheKafka(directory, QUICK_KRAFT | dict(settings or {}))
    else:
        server = KohortServer(directory, settings)
    server.start()
    return server
