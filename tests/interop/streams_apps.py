"""Kafka Streams applications in child processes, and what they tell."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.tools import MAVEN

from ..waiting import eventually
from .java import build, jvm
from .servers import Server, new_server
from .topics import create_topic

QUICK_STREAMS = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
}
"""Settings of a server that make tests quick: heartbeats often, short sessions, no waiting for instances to gather."""

LOGGED = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    *(
        f"-Dorg.slf4j.simpleLogger.log.org.apache.kafka.{chatty}=error"
        for chatty in ("clients.NetworkClient", "streams.StreamsConfig", "streams.processor.internals.StateDirectory")
    ),
)

WITHIN = 60.0
"""Seconds that a group of starting JVMs may take to come to rest on a busy machine."""


class Tasks(NamedTuple):
    """What an instance runs; warm-ups are among the standbys."""

    active: frozenset[str]
    standby: frozenset[str]


class Instance:
    """An instance of an application, as far as it has told; `events` grows as it speaks."""

    def __init__(self, process: Process, name: str, host: str) -> None:
        self.process, self.name, self.host = process, name, host
        self.events: list[dict[str, Any]] = []
        self.closing = False
        self._ids = itertools.count()

    def told(self, event: str) -> list[dict[str, Any]]:
        return [e for e in list(self.events) if e["event"] == event]

    @property
    def state(self) -> str:
        """Of the KafkaStreams object, or "" before it has started."""
        self.process.check()
        told = self.told("state")
        return told[-1]["state"] if told else ""

    @property
    def tasks(self) -> Tasks:
        self.process.check()
        told = self.told("tasks")
        if not told:
            return Tasks(frozenset(), frozenset())
        return Tasks(frozenset(told[-1]["active"]), frozenset(told[-1]["standby"]))

    @property
    def errors(self) -> list[tuple[str, str]]:
        """Class and message of all that its uncaught exception handler was given, and of the causes below."""
        return [(kind, text) for event in self.told("error") for kind, text in event["causes"]]

    def query(self, key: str, *, stale: bool = False) -> dict[str, Any]:
        """Who has a key of the store "counts": "active" and "standbys", as host:port; and its "value", if it is here.

        With `stale`, what a standby has will do. A "failure" is an exception of the query.
        """
        return self._ask(do="query", store="counts", key=key, stale=stale)

    def lags(self) -> dict[str, dict[str, int]]:
        """How many records the stores that it holds lack, by store and partition."""
        return self._ask(do="lags")

    def dropped(self) -> int:
        """How many records it has left out, late ones once for each of their windows."""
        return self._ask(do="dropped")

    def _ask(self, **question: Any) -> Any:
        number = next(self._ids)
        self.process.send(name=self.name, id=number, **question)

        def answered() -> list[dict[str, Any]]:
            self.process.check()
            return [event for event in self.told("answer") if event["id"] == number]

        (answer,) = eventually(answered, what=f"{self.name} answers {question}")
        return answer["answer"]

    def begin_close(self, *, leave: bool = False) -> None:
        """Let it close while others are asked to."""
        if not self.closing:
            self.closing = True
            self.process.send(name=self.name, do="close", leave=leave)

    def close(self, *, leave: bool = False) -> None:
        """As an application that is stopped closes its KafkaStreams.

        With the streams protocol it leaves its group; with the classic one only if told to, and by its session timeout.
        """
        self.begin_close(leave=leave)
        (closed,) = eventually(lambda: self.told("closed"), within=30, what=f"{self.name} is closed")
        assert closed["in time"]


class Process:
    """A JVM that runs instances of applications, with the newest Kafka Streams or an older one; or another program."""

    def __init__(
        self, directory: Path, project: str = "streams", main: str = "Applications", *, older: bool = False
    ) -> None:
        classes, _, dependencies = build.classpath(project).partition(":")
        before = f":{Path(classes).parent / 'older'}/*" if older else ""
        command = [
            "java", *jvm.FLAGS, *LOGGED, "-cp", f"{classes}{before}:{dependencies}", f"kohort.interop.{main}",
        ]  # fmt: skip
        directory.mkdir(parents=True)
        self.directory = directory
        self.complained = directory / "stderr.txt"
        self.instances: dict[str, Instance] = {}
        with self.complained.open("wb") as err:
            self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err)
        self.listener = threading.Thread(target=self._listen)
        self.listener.start()

    def _listen(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            if line.endswith(b"\n"):  # the last line of one that was killed may be cut
                event = json.loads(line)
                self.instances[event["name"]].events.append(event)

    def check(self) -> None:
        code = self.popen.poll()
        assert code is None, f"the JVM ended with code {code}:\n{self.complaints()}"

    def complaints(self) -> str:
        """The warnings and errors it has logged."""
        return self.complained.read_text()

    def send(self, **command: Any) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(json.dumps(command).encode() + b"\n")
        self.popen.stdin.flush()

    def kill(self) -> None:
        """As `kill -9` does."""
        self.popen.kill()
        self.popen.wait(20)
        self.listener.join()
        for pipe in (self.popen.stdin, self.popen.stdout):
            assert pipe is not None
            pipe.close()


class Fleet:
    """Instances of applications against a server, in a JVM that tests share or in their own, and what they need."""

    _ports = itertools.count(10_000)

    def __init__(self, server: Server, directory: Path, shared: Callable[[], Process]) -> None:
        self.server, self.directory = server, directory
        self.admin = AdminClient({"bootstrap.servers": server.bootstrap})
        self.shared = shared
        self.own: list[Process] = []
        self.instances: list[Instance] = []

    def topic(self, name: str, partitions: int = 1) -> str:
        return create_topic(self.admin, name, partitions)

    def process(self, *, older: bool = False) -> Process:
        """A JVM that may be killed."""
        self.own.append(Process(self.directory / f"jvm-{len(self.own)}", older=older))
        return self.own[-1]

    def start(
        self,
        application: str,
        topology: str,
        *,
        process: Process | None = None,
        directory: str = "",
        endpoint: bool = True,
        on_error: str = "SHUTDOWN_CLIENT",
        configs: Mapping[str, str] | None = None,
        **topics: str,
    ) -> Instance:
        """An instance of an application, in the shared JVM or another.

        Args:
            directory: of its state; one of its own, unless it is to find what another has left.
            endpoint: whether others can ask it for what its stores have.
            on_error: what its uncaught exception handler answers.
        """
        process = process or self.shared()
        host = f"localhost:{next(self._ports)}"  # nobody listens there: it is only a name
        name = f"{application}@{host}"
        instance = process.instances[name] = Instance(process, name, host)
        self.instances.append(instance)
        defaults = {
            "application.id": application,
            "application.server": host if endpoint else "",
            "bootstrap.servers": self.server.bootstrap,
            "group.protocol": "streams",
            "processing.guarantee": "exactly_once_v2",
            "state.dir": str(self.directory / "state" / (directory or host.replace(":", "-"))),
            "statestore.cache.max.bytes": "0",
            "replication.factor": "1",
            "metadata.max.age.ms": "1000",
            "reconnect.backoff.max.ms": "200",
            "retry.backoff.ms": "20",
            "producer.transaction.timeout.ms": "2000",
        }
        question = {"topology": topology, "topics": topics, "configs": {**defaults, **(configs or {})}}
        process.send(do="start", name=name, **question, **{"on error": on_error})
        return instance

    def configure(self, group: str, **configs: str) -> None:
        configure(self.admin, group, **configs)

    def end(self) -> None:
        """Kill its own JVMs, and close what runs in the shared one. Pytest shows what they logged with a failure."""
        for process in self.own:
            process.kill()
        others = [instance for instance in self.instances if instance.process not in self.own]
        for instance in others:
            instance.begin_close()
        for instance in others:
            instance.close()
        for process in {instance.process for instance in self.instances}:
            sys.stderr.write(process.complaints()[-20_000:])


def configure(admin: AdminClient, group: str, **configs: str) -> None:
    """Settings of one group: `streams__num__standby__replicas="1"` is streams.num.standby.replicas."""
    # Kafka 4.2 forgets the server's own defaults for a group that has any setting of its own.
    settings = {key.removeprefix("group."): value for key, value in QUICK_STREAMS.items() if ".min." not in key}
    settings |= {key.replace("__", "."): value for key, value in configs.items()}
    resource = ConfigResource(ResourceType.GROUP, group)
    for key, value in settings.items():
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(entry)
    admin.incremental_alter_configs([resource])[resource].result(20)


class Garage:
    """What the tests of a module share: a server for streams groups, and a JVM that starts when first asked for."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.server, self.directory = server, directory
        self.process: Process | None = None

    def shared(self) -> Process:
        if self.process is None:
            self.process = Process(self.directory / "jvm")
        return self.process

    @contextmanager
    def fleet(self, directory: Path) -> Iterator[Fleet]:
        """A fleet for one test."""
        fleet = Fleet(self.server, directory, self.shared)
        try:
            yield fleet
        finally:
            fleet.end()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()


def open_garage(directory: Path) -> Iterator[Garage]:
    """The body of a fixture."""
    MAVEN.require()
    garage = Garage(new_server(directory / "server", QUICK_STREAMS), directory)
    yield garage
    garage.close()
    garage.server.stop()


def tasks(**subtopologies: int) -> list[str]:
    """All tasks of so many partitions: `tasks(_0=2, _1=1)` are 0_0, 0_1 and 1_0."""
    return [f"{name[1:]}_{partition}" for name, count in subtopologies.items() for partition in range(count)]


def share(instances: Sequence[Instance], all_tasks: Iterable[str]) -> bool:
    """Whether all instances run, each active task is with one of them, and each of them has some."""
    owned = sorted(task for instance in instances for task in instance.tasks.active)
    return all(i.state == "RUNNING" and i.tasks.active for i in instances) and owned == sorted(all_tasks)
