"""Subscriptions and assignments: round trips in all versions, version probing, and bytes that make no sense."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.streams.classic.assignment import Assignment, decode_assignment, encode_assignment
from kohort.client.streams.classic.subscription import (
    Subscription,
    TooNewError,
    TopologyId,
    decode_subscription,
    encode_subscription,
    fingerprint,
)
from kohort.client.streams.classic.subscription_prefix import SubscriptionPrefix, read_prefix
from kohort.client.streams.classic.versions import ErrorCode, version_to_join_with
from kohort.protocol.messages.streams_group_heartbeat import TaskOffset
from kohort.protocol.messages.streams_subscription import StreamsSubscription
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology
from kohort.streams.topology_messages import topology_request

TOPOLOGY = Topology(
    {
        "0": Subtopology(source_topics=["flights"], repartition_sinks=["by-day"]),
        "1": Subtopology(
            repartition_sources=[InternalTopic("by-day")], changelogs=[InternalTopic("counts", configs={"a": "b"})]
        ),
    },
    epoch=3,
)

TASKS = st.builds(TaskId, st.sampled_from(["0", "1"]), st.integers(0, 5))
NUMBERS = st.dictionaries(TASKS, st.integers(-4, 2**63 - 1), max_size=4)
SUBSCRIPTIONS = st.builds(
    Subscription,
    tasks=st.dictionaries(TASKS, st.sampled_from(Role), max_size=6),
    offsets=NUMBERS,
    ends=NUMBERS,
    process_id=st.text(max_size=5),
    rack_id=st.none() | st.text(max_size=5),
    client_tags=st.dictionaries(st.text(min_size=1, max_size=3), st.text(max_size=3), max_size=2),
    user_endpoint=st.none() | st.builds(Endpoint, st.text(max_size=5), st.integers(0, 65535)),
    topology=st.none() | st.just(TOPOLOGY),
    shutdown=st.booleans(),
)
ASSIGNMENTS = st.builds(
    Assignment,
    version=st.just(3),
    supported=st.integers(1, 9),
    common=st.integers(1, 9),
    error=st.sampled_from(ErrorCode),
    join_again=st.booleans(),
    statuses=st.lists(st.builds(Status, st.sampled_from(StatusCode), st.text(max_size=9)), max_size=2).map(tuple),
    tasks=st.dictionaries(TASKS, st.sampled_from(Role), max_size=6),
    acceptable_lag=st.none() | st.integers(0, 2**40),
    probing_ms=st.none() | st.integers(0, 2**31 - 1),
    topology=st.none() | st.builds(TopologyId, st.integers(0, 2**31 - 1), st.integers(-(2**63), 2**63 - 1)),
)


@given(SUBSCRIPTIONS)
def test_version_3_carries_all(subscription: Subscription) -> None:
    read = decode_subscription(encode_subscription(subscription))
    topology_id = TopologyId(-1, 0) if subscription.topology is None else TopologyId.of(subscription.topology)
    assert (read.version, read.latest_supported, read.topology_id) == (3, 3, topology_id)
    assert read.subscription == subscription.__class__(
        **{name: getattr(subscription, name) for name in Subscription.__slots__ if name != "state_stores"},
        state_stores={task: 0 for task, role in subscription.tasks.items() if role is not Role.WARMUP},
    )


@given(SUBSCRIPTIONS, st.dictionaries(TASKS, st.integers(0, 9)), st.sampled_from([1, 2]))
def test_older_versions_carry_tasks(subscription: Subscription, stores: dict[TaskId, int], version: int) -> None:
    """With the number of stores of each since version 2; whatever the member has on disk looks like a standby."""
    given = Subscription(
        tasks=subscription.tasks,
        offsets=subscription.offsets,
        state_stores=stores,
        topology=TOPOLOGY,
        shutdown=subscription.shutdown,
    )
    read = decode_subscription(encode_subscription(given, version, latest=3))
    has = {*subscription.tasks, *subscription.offsets}
    assert (read.version, read.latest_supported, read.topology_id) == (version, 3, TopologyId.of(TOPOLOGY))
    assert read.subscription == Subscription(
        tasks={
            task: Role.ACTIVE if subscription.tasks.get(task) is Role.ACTIVE else Role.STANDBY for task in sorted(has)
        },
        state_stores={task: stores.get(task, 0) for task in has} if version == 2 else {},
        shutdown=subscription.shutdown,
    )


@given(ASSIGNMENTS)
def test_assignments_are_read_as_they_were_written(assignment: Assignment) -> None:
    assert decode_assignment(encode_assignment(assignment)) == assignment


@given(ASSIGNMENTS, st.sampled_from([1, 2]))
def test_older_assignments_lack_what_goes_with_warm_ups_alone(assignment: Assignment, version: int) -> None:
    cold = {task: Role.STANDBY if role is Role.WARMUP else role for task, role in assignment.tasks.items()}
    written = replace(assignment, version=version, tasks=cold)
    assert decode_assignment(encode_assignment(written)) == replace(written, acceptable_lag=None, probing_ms=None)


@given(st.binary() | st.binary().map(lambda data: b"\x00\x03" + data), st.integers(1, 3))
def test_any_bytes_are_read_or_refused(data: bytes, latest: int) -> None:
    try:
        decode_subscription(data, latest)
    except TooNewError:
        assert read_prefix(data).version > latest
    except ValueError as error:
        assert str(error)
    try:
        decode_assignment(data, latest)
    except ValueError as error:
        assert str(error)


@given(SUBSCRIPTIONS, st.data())
def test_damaged_subscriptions_are_read_or_refused(subscription: Subscription, data: st.DataObject) -> None:
    damaged = bytearray(encode_subscription(subscription))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(TooNewError, ValueError):
        decode_subscription(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))


@given(SUBSCRIPTIONS, st.integers(1, 3), st.integers(0, 3), st.integers(0, 9))
def test_a_reader_of_any_version_reads_the_prefix(
    subscription: Subscription, version: int, leader_version: int, join_number: int
) -> None:
    data = encode_subscription(subscription, version, 4, join_number, leader_version)
    assert read_prefix(data) == (version, 4, leader_version, bool(subscription.tasks))


@pytest.mark.parametrize(
    ("version", "leader_version", "latest", "stays_too_new"),
    [
        (3, 0, 2, False),  # it has heard no leader yet
        (3, 3, 2, False),  # the leader before knew more
        (3, 2, 2, True),
        (3, 1, 2, True),
        (2, 2, 2, False),
        (3, -1, 2, False),
    ],
)
def test_whether_a_writer_stays_too_new(version: int, leader_version: int, latest: int, stays_too_new: bool) -> None:
    assert SubscriptionPrefix(version, 3, leader_version, has_tasks=True).stays_too_new(latest) == stays_too_new


@pytest.mark.parametrize("data", [b"", b"\0\3\0\3\0\0", b"\0\0\0\3\0\0\1", b"\xff\xff\0\3\0\0\1more"])
def test_what_no_version_begins_with_is_no_subscription(data: bytes) -> None:
    with pytest.raises(ValueError, match="no subscription"):
        read_prefix(data)


def test_a_member_that_joins_again_sends_something_else_though_it_has_the_same() -> None:
    first, second = (encode_subscription(Subscription(), 1, join_number=number) for number in (1, 2))
    assert first != second
    assert decode_subscription(first) == decode_subscription(second)


def test_a_topology_has_the_same_fingerprint_in_any_epoch() -> None:
    assert fingerprint(TOPOLOGY) == fingerprint(Topology(TOPOLOGY.subtopologies, epoch=4))
    assert fingerprint(TOPOLOGY) != fingerprint(Topology({"0": Subtopology(source_topics=["flights"])}))


def some(*partitions: int, stores: tuple[int, ...] = ()) -> StreamsSubscription.PreviousTasks:
    return StreamsSubscription.PreviousTasks(subtopology_id="0", partitions=partitions, state_stores=stores)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (StreamsSubscription(active_tasks=[some(1, stores=(1, 2))]), "2 numbers of state stores for 1 tasks"),
        (StreamsSubscription(active_tasks=[some(1, stores=(-1,))]), "number of state stores is negative"),
        (StreamsSubscription(active_tasks=[some(1), some(1)]), "task is listed twice"),
        (StreamsSubscription(active_tasks=[some(1)], standby_tasks=[some(1)]), "task is listed twice"),
        (StreamsSubscription(standby_tasks=[some(-1)]), "task is negative"),
        (StreamsSubscription(topology=topology_request(TOPOLOGY), topology_epoch=TOPOLOGY.epoch), "fingerprint"),
        (
            StreamsSubscription(
                topology=topology_request(TOPOLOGY), topology_epoch=2, topology_fingerprint=fingerprint(TOPOLOGY)
            ),
            "epoch",
        ),
        (StreamsSubscription(topology=topology_request(Topology({}))), "topology can't be"),
        (
            StreamsSubscription(task_offsets=[TaskOffset(subtopology_id="0", partition=1)] * 2),
            "offset of a task is listed twice",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(message: StreamsSubscription, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        decode_subscription(b"\x00\x03" + message.encode(3))


@pytest.mark.parametrize(
    ("written", "assigned", "supported", "common", "latest", "next_version"),
    [
        (3, 3, 3, 3, 3, None),  # all know the same
        (3, 2, 2, 2, 3, 2),  # the leader is older
        (3, 1, 1, 1, 3, 1),
        (3, 2, 3, 2, 3, None),  # another member is older
        (2, 2, 3, 3, 3, 3),  # it isn't there any more
        (1, 1, 3, 2, 3, 2),
        (2, 2, 4, 4, 3, 3),  # all are newer than this one, which doesn't know what they know
        (3, 3, 4, 4, 3, None),
    ],
)
def test_the_version_to_join_again_with(
    written: int, assigned: int, supported: int, common: int, latest: int, next_version: int | None
) -> None:
    assert version_to_join_with(written, assigned, supported, common, latest) == next_version
