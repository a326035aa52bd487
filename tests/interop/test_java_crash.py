"""kill -9: of a Java consumer whose group goes on where it stopped, and of the server under a Java producer."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from ..waiting import eventually
from .java.jvm import Lines, Scenarios, scenario_process
from .servers import Server
from .topics import create_topic

pytestmark = pytest.mark.long

PARTITIONS = 6


class JavaMember:
    """A member in a process of its own, as far as it has said."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines = Lines(process)
        self.owns: set[int] = set()
        self.reads: list[list[str]] = []

    def listen(self, seconds: float) -> None:
        """Take in a line, if one comes in time."""
        with contextlib.suppress(TimeoutError):
            match json.loads(self.lines.next(time.monotonic() + seconds)):
                case {"owns": partitions}:
                    self.owns = set(partitions)
                case {"read": records}:
                    self.reads.append(records)

    def kill(self) -> None:
        """End it, and take in what it had said before."""
        self.process.kill()
        with contextlib.suppress(RuntimeError):
            while True:
                self.listen(5)


class Group:
    """Members that share the partitions of a topic, until the `with` block ends."""

    def __init__(self, stack: contextlib.ExitStack, bootstrap: str, topic: str, group: str) -> None:
        self.stack = stack
        self.bootstrap = bootstrap
        self.options = {"topic": topic, "group__id": group, "session__timeout__ms": 10_000}
        self.alive: list[JavaMember] = []

    def join(self) -> JavaMember:
        process = self.stack.enter_context(scenario_process("member", self.bootstrap, **self.options))
        self.alive.append(JavaMember(process))
        return self.alive[-1]

    def listen_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"{otherwise}: {[member.owns for member in self.alive]}"
            for member in self.alive:
                member.listen(0.02)

    def shared(self) -> bool:
        """Whether each partition has one owner, and each member as many as the others."""
        owned = sorted(partition for member in self.alive for partition in member.owns)
        return owned == list(range(PARTITIONS)) and len({len(member.owns) for member in self.alive}) == 1


@pytest.fixture
def scenarios() -> Iterator[Scenarios]:
    MAVEN.require()
    running = Scenarios()
    yield running
    running.close()


def test_the_others_take_over_from_a_killed_member(
    scenarios: Scenarios, server: Server, new_topic: Callable[..., str], new_name: Callable[[], str]
) -> None:
    topic = new_topic(PARTITIONS)

    def send_records() -> set[str]:
        sent = scenarios.run("produce", server.bootstrap, topic=topic, records=200)
        return {f"{record['partition']}/{record['offset']}" for record in sent}

    with contextlib.ExitStack() as stack:
        group = Group(stack, server.bootstrap, topic, new_name())
        members = [group.join() for _ in range(3)]
        group.listen_until(group.shared, "three members never shared the partitions")
        written = send_records()
        killed = members[1]
        group.listen_until(lambda: bool(killed.reads), "the member read nothing before its end")
        killed.kill()
        group.alive.remove(killed)
        written |= send_records()
        group.listen_until(group.shared, "two members never took over")
        members.append(group.join())
        group.listen_until(group.shared, "the new member never got its share")
        written |= send_records()

        def reads() -> Counter[str]:
            return Counter(record for member in members for records in member.reads for record in records)

        group.listen_until(lambda: written <= reads().keys(), "records were lost")
        twice = {record for record, times in reads().items() if times > 1}
        assert twice <= set(killed.reads[-1]), "read twice, though committed"


def test_an_idempotent_producer_outlives_the_server(scenarios: Scenarios, own_server: Server) -> None:
    create_topic(AdminClient({"bootstrap.servers": own_server.bootstrap}), "t")
    options = {"topic": "t", "records": 1500, "pause": 1}
    with scenario_process("produce", own_server.bootstrap, **options) as process:
        log = own_server.data_dir / "t-0" / "00000000000000000000.log"
        eventually(lambda: log.exists() and log.stat().st_size > 50_000, what="records are on their way")
        own_server.restart()
        sent = json.loads(Lines(process).next(time.monotonic() + 60))
    assert [record["offset"] for record in sent] == list(range(1500)), "lost, doubled or out of order"
    assert scenarios.run("consume", own_server.bootstrap, topic="t", records=1500) == sent
