"""What a notebook shows of a group's description."""

from __future__ import annotations

from kohort.client.administration.group_types import GroupDescription, GroupMember, GroupType, StreamsMemberState
from kohort.client.types import Broker, TopicPartition
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology

HOSTILE = "<img src=x onerror=alert(1)>"


def member(name: str, **more: object) -> GroupMember:
    given: dict[str, object] = {
        "member_id": name, "instance_id": None, "client_id": "client", "host": "/10.0.0.1", "rack": None, "epoch": 3,
        "classic": False, "topics": (), "pattern": None, "partitions": (), "target": None,
    }  # fmt: skip
    return GroupMember(**given | more)  # type: ignore[arg-type]


def shown(*members: GroupMember, **more: object) -> str:
    given: dict[str, object] = {
        "group_id": "orders", "type": GroupType.CONSUMER, "state": "Stable", "coordinator": Broker(1, "b", 9092),
        "assignor": "uniform", "protocol_type": "consumer", "epoch": 7, "assignment_epoch": 7, "members": members,
    }  # fmt: skip
    return GroupDescription(**given | more)._repr_html_()  # type: ignore[arg-type]


def test_a_group_shows_its_members_with_their_partitions() -> None:
    has = tuple(TopicPartition("flights", each) for each in (0, 1, 2, 5))
    page = shown(member("one", partitions=has, target=has[:2]), member("two", instance_id="static"))
    assert "Stable, 2 members, coordinator b:9092 (id 1), epoch 7, assignor uniform" in page
    assert ">flights: 0-2, 5</td>" in page and ">flights: 0-1</td>" in page
    assert ">two (static)</td>" in page


def test_a_streams_group_shows_tasks_with_their_roles() -> None:
    tasks = {TaskId("0", 0): Role.ACTIVE, TaskId("0", 1): Role.ACTIVE, TaskId("1", 0): Role.WARMUP}
    state = StreamsMemberState(
        process_id="p", endpoint=None, tags={}, topology_epoch=0, tasks=tasks, target_tasks=tasks, task_offsets={},
        task_end_offsets={},
    )  # fmt: skip
    page = shown(member("one", streams=state), type=GroupType.STREAMS, topology=Topology({}))
    assert ">active 0: 0-1; warm-up 1: 0</td>" in page
    assert ">tasks</th>" in page


def test_names_are_text() -> None:
    has = (TopicPartition(HOSTILE, 0),)
    page = shown(
        member(HOSTILE, instance_id=HOSTILE, client_id=HOSTILE, host=HOSTILE, partitions=has, target=has),
        group_id=HOSTILE, state=HOSTILE, assignor=HOSTILE,
    )  # fmt: skip
    assert "<img" not in page
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 6


def test_a_group_without_members_has_no_table() -> None:
    assert "<table" not in shown(state="Empty", epoch=None)
