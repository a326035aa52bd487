"""Warm-ups and static members, with the members of Kafka 4.4's clients. They report of their state what a test wants.

The broker is Kohort whatever the other tests run against: Apache Kafka 4.2 has neither.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from ..waiting import eventually
from .conftest import watch
from .servers import KohortServer, Server
from .streams_apps import QUICK_STREAMS, Instance, Process, configure
from .topics import create_topic

pytestmark = pytest.mark.long

SETTINGS = QUICK_STREAMS | {
    "group.streams.min.task.offset.interval.ms": "100",
    "group.streams.task.offset.interval.ms": "200",
}
FAR, NEAR = (0, 50_000), (45_000, 50_000)
"""Offset and end of a changelog: more, and fewer, than the 10,000 records that a warm-up may lag behind."""

NewName = Callable[[], str]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Process]]:
    MAVEN.require()
    server = KohortServer(tmp_path_factory.mktemp("server"), SETTINGS)
    server.start()
    process = Process(tmp_path_factory.mktemp("jvm") / "members", "streams_member", "Members")
    yield server, process
    process.kill()
    server.stop()


class Group:
    """A group whose topology has one stateful subtopology of four tasks."""

    def __init__(self, server: Server, process: Process, name: str) -> None:
        self.server, self.process, self.name = server, process, name
        self.admin = AdminClient({"bootstrap.servers": server.bootstrap})
        self.topic = create_topic(self.admin, f"{name}-in", 4)
        self.members: list[Instance] = []

    def join(self, offsets: Mapping[str, tuple[int, int]] | None = None, instance_id: str | None = None) -> Instance:
        """A member, in a process (as the protocol has it) of its own; with an instance id, always the same."""
        name = f"{self.name}-{len(self.members)}"
        member = self.process.instances[name] = Instance(self.process, name, "")
        self.members.append(member)
        configs = {"bootstrap.servers": self.server.bootstrap, "group.id": self.name, "group.protocol": "consumer"}
        configs |= {"auto.offset.reset": "earliest", "retry.backoff.ms": "20", "enable.auto.commit": "false"}
        if instance_id is not None:
            configs["group.instance.id"] = instance_id
        where = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name}/{instance_id or name}"))
        self.send(member, do="start", topic=self.topic, process=where, configs=configs, offsets=offsets or {})
        return member

    def report(self, member: Instance, **offsets: tuple[int, int]) -> None:
        """What a member has restored: `t0=(offset, end)` of task 0_0."""
        self.send(member, do="offsets", offsets={f"0_{key[1:]}": pair for key, pair in offsets.items()})

    def close(self, member: Instance, how: str = "DEFAULT") -> None:
        member.closing = True
        self.send(member, do="close", how=how)
        eventually(lambda: member.told("closed"), what=f"{member.name} is closed")

    def send(self, member: Instance, **command: Any) -> None:
        self.process.send(name=member.name, **command)

    def end(self) -> None:
        for member in self.members:
            if not member.closing:
                self.close(member, "LEAVE_GROUP")


@pytest.fixture
def group(running: tuple[Server, Process], request: pytest.FixtureRequest, new_name: NewName) -> Iterator[Group]:
    watch(request.node, running[0])
    group = Group(*running, new_name())
    yield group
    group.end()


def has(member: Instance, active: set[int], warmup: set[int] | None = None) -> bool:
    """Whether a member has just these tasks."""
    member.process.check()
    assert not member.errors, member.errors
    told = member.told("tasks")
    wanted = ([f"0_{n}" for n in sorted(active)], [], [f"0_{n}" for n in sorted(warmup or ())])
    return bool(told) and (told[-1]["active"], told[-1]["standby"], told[-1]["warmup"]) == wanted


def warming(member: Instance) -> list[int]:
    told = member.told("tasks")
    return [int(task.removeprefix("0_")) for task in told[-1]["warmup"]] if told else []


EVERYTHING = {0, 1, 2, 3}
RUNNING = dict.fromkeys(("t0", "t1", "t2", "t3"), (-2, 50_000))  # -2: up to the end, as what runs is


def one_with_everything(group: Group) -> Instance:
    a = group.join()
    eventually(lambda: has(a, EVERYTHING), what="the first has everything")
    group.report(a, **RUNNING)
    return a


def test_a_task_moves_when_its_state_is_there(group: Group) -> None:
    a = one_with_everything(group)
    b = group.join()
    first, second = eventually(lambda: len(warming(b)) == 2 and warming(b), what="the second warms up two tasks")
    assert has(a, EVERYTHING), "the first still runs all of them"
    group.report(b, **{f"t{first}": FAR, f"t{second}": NEAR})
    eventually(lambda: has(b, {second}, {first}), what="what is nearly there has moved")
    eventually(lambda: has(a, EVERYTHING - {second}), what="and only that")
    group.report(b, **{f"t{first}": NEAR, f"t{second}": (-2, 50_000)})
    eventually(lambda: has(b, {first, second}), what="the other one has moved, too")
    eventually(lambda: has(a, EVERYTHING - {first, second}), what="and nothing else")


def test_no_more_warm_ups_than_allowed(group: Group) -> None:
    configure(group.admin, group.name, streams__num__warmup__replicas="1")
    a = one_with_everything(group)
    b = group.join()
    (first,) = eventually(lambda: warming(b), what="the second warms up one task")
    group.report(b, **{f"t{first}": NEAR})
    eventually(lambda: first not in warming(b) and warming(b), what="one has moved, and now the other warms up")
    (second,) = warming(b)
    assert has(b, {first}, {second})
    group.report(b, **{f"t{first}": (-2, 50_000), f"t{second}": NEAR})
    eventually(lambda: has(b, {first, second}) and has(a, EVERYTHING - {first, second}), what="both have moved")
    assert all(len(event["warmup"]) <= 1 for event in b.told("tasks"))


def test_nothing_warms_up_where_the_state_is_on_disk(group: Group) -> None:
    a = one_with_everything(group)
    b = group.join({"0_1": NEAR, "0_2": NEAR})
    eventually(lambda: has(b, {1, 2}) and has(a, {0, 3}), what="the tasks go where their state is")
    assert not any(event["warmup"] for event in b.told("tasks"))


def test_nobody_waits_for_the_state_of_one_that_is_gone(group: Group) -> None:
    configure(group.admin, group.name, streams__num__warmup__replicas="2")
    a = one_with_everything(group)
    b = group.join()
    eventually(lambda: len(warming(b)) == 2, what="the second warms up two tasks")
    group.close(a)
    eventually(lambda: has(b, EVERYTHING), what="the second has everything, be it restored or not")


def test_a_static_member_comes_back_to_what_it_had(group: Group) -> None:
    configure(group.admin, group.name, streams__num__warmup__replicas="0", streams__session__timeout__ms="30000")
    a, b = group.join(instance_id="a"), group.join(instance_id="b")
    eventually(lambda: len(shares := shared(a, b)) == 4 and shares[0] != shares[-1], what="two share the tasks")
    had, seen = set(map(int, (task[2:] for task in a.told("tasks")[-1]["active"]))), len(b.told("tasks"))
    group.close(a)
    again = group.join(instance_id="a")
    eventually(lambda: has(again, had), what="it has what it had")
    assert len(b.told("tasks")) == seen, "the other one has noticed nothing"
    group.close(again, "LEAVE_GROUP")
    eventually(lambda: has(b, EVERYTHING), what="the other one has everything once it has left for good")


def shared(*members: Instance) -> list[str]:
    """Who has each task, as far as each has one member."""
    tasks = [(task, m.name) for m in members for told in m.told("tasks")[-1:] for task in told["active"]]
    return [name for _, name in sorted(tasks)] if len({task for task, _ in tasks}) == len(tasks) else []
