"""What a leader answers: each rule by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import pytest

from kohort.client.streams.classic import leader
from kohort.client.streams.classic.assignment import Assignment, decode_assignment
from kohort.client.streams.classic.leader import lead, topics_seen
from kohort.client.streams.classic.led_group import GroupAssignment, JoinedMember, LeaderSettings
from kohort.client.streams.classic.subscription import Subscription, TopologyId, encode_subscription
from kohort.client.streams.classic.versions import ErrorCode
from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.coordinator.placement import model, optimal
from kohort.streams.endpoint import Endpoint
from kohort.streams.statuses import StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

from .topics import Topics

ACTIVE, STANDBY, WARMUP = Role

COUNTS = Topology({"0": Subtopology(source_topics=["words"], changelogs=[InternalTopic("counts")])})
"""A program with one stateful subtopology."""

FILTER = Topology({"0": Subtopology(source_topics=["words"])})
"""One without state."""


def topics(partitions: int = 4) -> Topics:
    return Topics(words=partitions, counts=partitions)


def task(number: int) -> TaskId:
    return TaskId("0", number)


def tasks(role: Role, *numbers: int) -> dict[TaskId, Role]:
    return dict.fromkeys(map(task, numbers), role)


class World:
    """Members, and what their leader answers."""

    def __init__(self, topology: Topology = COUNTS, partitions: int = 4, **settings: Any) -> None:
        self.topology = topology
        self.topics = topics(partitions)
        self.settings = LeaderSettings(**settings)
        self.members: dict[str, JoinedMember] = {}

    def member(
        self,
        name: str,
        has: Mapping[TaskId, Role] | None = None,
        version: int = 3,
        latest: int = 3,
        instance_id: str | None = None,
        leader_version: int = 0,
        **said: Any,
    ) -> World:
        said = {"topology": self.topology, "process_id": f"process of {name}"} | said
        data = encode_subscription(
            Subscription(tasks=has or {}, **said), version, latest, leader_version=leader_version
        )
        self.members[name] = JoinedMember(name, instance_id, data)
        return self

    def damage(self, name: str) -> World:
        """Makes what a member wrote unreadable, but for its prefix."""
        member = self.members[name]
        self.members[name] = member._replace(subscription=member.subscription[:-1])
        return self

    def lead(self, static: Mapping[str, frozenset[TaskId]] | None = None) -> GroupAssignment:
        first = min(self.members)
        return lead(list(self.members.values()), first, self.topology, self.topics, self.settings, static)

    def answers(self, static: Mapping[str, frozenset[TaskId]] | None = None) -> dict[str, Assignment]:
        return read(self.lead(static))


def read(result: GroupAssignment) -> dict[str, Assignment]:
    return {name: decode_assignment(data, latest=9) for name, data in result.assignments.items()}


def codes(answer: Assignment) -> list[StatusCode | int]:
    return [status.code for status in answer.statuses]


def owned(answers: Mapping[str, Assignment]) -> dict[str, set[int]]:
    return {
        name: {each.partition for each, role in answer.tasks.items() if role is ACTIVE}
        for name, answer in answers.items()
    }


def caught_up(numbers: Iterable[int], lag: int = 0) -> dict[str, Any]:
    return {
        "offsets": {task(number): 100_000 - lag for number in numbers},
        "ends": {task(number): 100_000 for number in numbers},
    }


def test_all_tasks_of_a_new_group_are_given() -> None:
    answers = World().member("a").member("b").answers()
    assert sorted(map(len, owned(answers).values())) == [2, 2]
    assert set().union(*owned(answers).values()) == {0, 1, 2, 3}
    assert not any(answer.join_again or answer.statuses or answer.probing_ms for answer in answers.values())


def test_tasks_are_placed_as_the_broker_places_them() -> None:
    """The broker's target comes from the same input: what members have, their lags and ends."""
    world = World(partitions=7, num_standby_replicas=1, rack_aware_assignment_tags=("zone",), max_warmup_replicas=0)
    for name, has in {"a": tasks(ACTIVE, 0, 1, 2), "b": tasks(ACTIVE, 3, 4) | tasks(STANDBY, 0), "c": {}}.items():
        world.member(name, has, client_tags={"zone": name}, **caught_up({each.partition for each in has}, lag=5))
    members = tuple(
        model.Member(
            name,
            f"process of {name}",
            {"zone": name},
            frozenset(each for each, role in has.items() if role is ACTIVE),
            frozenset(each for each, role in has.items() if role is STANDBY),
        )
        for name, has in {"a": tasks(ACTIVE, 0, 1, 2), "b": tasks(ACTIVE, 3, 4) | tasks(STANDBY, 0), "c": {}}.items()
    )
    target = optimal(
        model.Group(
            (model.SubtopologyTasks("0", 7, 1),),
            members,
            standbys=1,
            rack_tags=("zone",),
            lags={
                ("process of a", task(0)): 5,
                ("process of a", task(1)): 5,
                ("process of a", task(2)): 5,
                ("process of b", task(0)): 5,
                ("process of b", task(3)): 5,
                ("process of b", task(4)): 5,
            },
            ends={task(number): 100_000 for number in range(5)},
        )
    )
    answers = world.answers()
    # c waits for nothing that a and b have: five of seven tasks have an owner, and two of these stay.
    assert {name: answer.tasks for name, answer in answers.items()} == target.by_member()


def test_a_task_is_given_on_when_its_owner_has_closed_it() -> None:
    world = World(FILTER).member("a", tasks(ACTIVE, 0, 1, 2, 3)).member("b")
    answers = world.answers()
    kept = owned(answers)["a"]
    assert len(kept) == 2
    assert answers["a"].join_again
    assert not answers["b"].tasks
    assert codes(answers["b"]) == [StatusCode.ASSIGNMENT_DELAYED]
    assert not answers["b"].join_again

    answers = world.member("a", tasks(ACTIVE, *kept)).answers()
    assert owned(answers) == {"a": kept, "b": {0, 1, 2, 3} - kept}
    assert not any(answer.join_again or answer.statuses for answer in answers.values())


def test_a_task_that_two_say_they_run_is_run_by_none_until_one_has_closed_it() -> None:
    world = World(FILTER, partitions=1).member("a", tasks(ACTIVE, 0)).member("b", tasks(ACTIVE, 0))
    answers = world.answers()
    assert owned(answers) == {"a": set(), "b": set()}
    assert any(answer.join_again for answer in answers.values())


def test_a_stateful_task_stays_until_its_new_owner_has_caught_up() -> None:
    """The new owner warms up, and is given the task when its lag is acceptable and the old owner has closed it."""
    world = World(partitions=2, acceptable_recovery_lag=10, probing_rebalance_interval_ms=5000)
    world.member("a", tasks(ACTIVE, 0, 1), **caught_up([0, 1])).member("b")
    result = world.lead()
    answers = read(result)
    assert result.moving == 1
    assert owned(answers) == {"a": {0, 1}, "b": set()}
    [moving] = answers["b"].tasks
    assert answers["b"].tasks == {moving: WARMUP}
    assert (answers["a"].probing_ms, answers["b"].probing_ms) == (5000, None)  # the leader is enough
    assert answers["b"].acceptable_lag == 10

    answers = world.member("b", {moving: WARMUP}, **caught_up([moving.partition], lag=11)).answers()
    assert owned(answers) == {"a": {0, 1}, "b": set()}

    answers = world.member("b", {moving: WARMUP}, **caught_up([moving.partition], lag=10)).answers()
    assert owned(answers) == {"a": {1 - moving.partition}, "b": set()}
    assert answers["b"].tasks == {moving: WARMUP}  # the copy goes on until a has closed the task
    assert answers["a"].join_again

    kept = {1 - moving.partition}
    answers = world.member("a", tasks(ACTIVE, *kept), **caught_up([0, 1])).answers()
    assert owned(answers) == {"a": kept, "b": {moving.partition}}
    assert answers["a"].probing_ms is None


def test_there_are_at_most_so_many_warmups() -> None:
    world = World(partitions=8, max_warmup_replicas=1).member("a", tasks(ACTIVE, *range(8)), **caught_up(range(8)))
    result = world.member("b").lead()
    assert result.moving == 4
    assert list(read(result)["b"].tasks.values()) == [WARMUP]


@pytest.mark.parametrize("version", [1, 2])
def test_without_lags_tasks_move_at_once(version: int) -> None:
    """One member of an older version is enough: its tasks' lags are unknown, and it knows no warm-ups."""
    world = World(partitions=2).member("a", tasks(ACTIVE, 0, 1), **caught_up([0, 1])).member("b", version=version)
    answers = world.answers()
    assert len(owned(answers)["a"]) == 1
    assert answers["a"].join_again
    assert {answer.version for answer in answers.values()} == {version}


def test_warmups_go_on_as_standbys_when_a_member_knows_none() -> None:
    world = World(partitions=2).member("a", tasks(ACTIVE, 0, 1), **caught_up([0, 1]))
    world.member("b", tasks(WARMUP, 0), **caught_up([0], lag=50_000)).member("c", version=2)
    answers = world.answers()
    assert WARMUP not in {role for answer in answers.values() for role in answer.tasks.values()}


@pytest.mark.parametrize(("version", "moves"), [(1, False), (2, True)])
def test_numbers_of_state_stores_count_for_placement(version: int, moves: bool) -> None:
    """Stores without changelogs are in no topology; since version 2 members say that they have them (KIP-262)."""
    three = Topology({name: Subtopology(source_topics=[name]) for name in ("big", "small", "smaller")})
    big, small, smaller = (TaskId(name, 0) for name in three.subtopologies)
    world = World(three)
    world.topics = Topics(big=1, small=1, smaller=1)
    world.member("a", {big: ACTIVE, small: ACTIVE}, version=version, state_stores={big: 3, small: 1})
    world.member("b", {smaller: ACTIVE}, version=version, state_stores={smaller: 1})
    assert world.answers()["a"].join_again == moves


def test_who_is_newer_than_the_leader_joins_again_and_all_others_keep_what_they_have() -> None:
    world = World(FILTER, latest=2).member("a", tasks(ACTIVE, 0), version=2, latest=2)
    world.member("b", tasks(ACTIVE, 1)).member("c", tasks(ACTIVE, 2), version=1, latest=1)
    answers = world.answers()
    newer = answers.pop("b")
    assert (newer.error, newer.version, newer.supported) == (ErrorCode.SUBSCRIPTION_TOO_NEW, 2, 2)
    assert owned(answers) == {"a": {0}, "c": {2}}
    assert {answer.version for answer in answers.values()} == {1}


def test_all_write_the_lowest_version_and_hear_which_one_all_know() -> None:
    world = World(FILTER).member("a").member("b", version=2, latest=3).member("c", version=1, latest=2)
    assert {(each.version, each.common, each.supported) for each in world.answers().values()} == {(1, 2, 3)}


def test_one_that_cant_be_read_keeps_its_tasks_until_it_says_that_it_has_none() -> None:
    """Nobody knows what it runs, and whether it has heard that it is to close it, nobody but itself does."""
    world = World(FILTER).member("a", tasks(ACTIVE, 0)).member("b", tasks(ACTIVE, 1)).damage("b")
    for _ in range(2):
        result = world.lead()
        answers = read(result)
        assert owned(answers) == {"a": {0}, "b": set()}
        assert (answers["a"].error, answers["b"].error) == (ErrorCode.NONE, ErrorCode.SUBSCRIPTION_UNREADABLE)
        assert (answers["a"].join_again, answers["b"].join_again) == (False, True)
        [message] = result.messages
        assert message.startswith("member b can't be read: ")

    answers = world.member("b").damage("b").answers()
    assert owned(answers) == {"a": {0, 1, 2, 3}, "b": set()}
    assert not any(answer.join_again for answer in answers.values())


def test_one_that_cant_be_read_may_have_copies_on_any_disk() -> None:
    world = World(num_standby_replicas=1, max_warmup_replicas=0).member("a", tasks(ACTIVE, 0, 1, 2, 3))
    world.member("b").member("c", tasks(STANDBY, 0)).damage("c")
    answers = world.answers()
    assert not answers["b"].tasks
    assert answers["c"].join_again
    assert read(world.member("c").damage("c").lead())["b"].tasks


def test_whoever_writes_in_no_version_holds_nobody_up() -> None:
    world = World(FILTER).member("a")
    world.members["b"] = JoinedMember("b", None, b"nonsense"[:3])
    answers = world.answers()
    assert owned(answers) == {"a": {0, 1, 2, 3}, "b": set()}
    assert answers["b"].error is ErrorCode.SUBSCRIPTION_UNREADABLE


def test_who_stays_too_new_though_it_has_heard_of_it_loses_its_tasks() -> None:
    world = World(FILTER, latest=2).member("a", tasks(ACTIVE, 0), version=2, latest=2)
    for leader_version in (0, 3):
        answers = world.member("b", tasks(ACTIVE, 1), leader_version=leader_version).answers()
        assert answers["b"].error is ErrorCode.SUBSCRIPTION_TOO_NEW
        assert owned(answers)["a"] == {0}
    answers = world.member("b", tasks(ACTIVE, 1), leader_version=2).answers()
    assert (answers["b"].error, answers["b"].join_again) == (ErrorCode.SUBSCRIPTION_UNREADABLE, True)
    assert owned(answers)["a"] == {0}
    assert owned(world.member("b", leader_version=2).answers())["a"] == {0, 1, 2, 3}


def test_the_greatest_topology_epoch_wins() -> None:
    newer = Topology(FILTER.subtopologies, epoch=1)
    world = World(FILTER).member("a", tasks(ACTIVE, 0, 1, 2, 3)).member("b", topology=newer)
    result = world.lead()
    answers = read(result)
    assert result.topology == newer
    assert codes(answers["a"]) == [StatusCode.STALE_TOPOLOGY]
    assert {name: each.topology for name, each in answers.items()} == {
        "a": TopologyId.of(FILTER),
        "b": TopologyId.of(newer),
    }
    assert owned(answers) == {"a": set(), "b": set()}
    assert answers["a"].join_again
    assert owned(world.member("a").answers()) == {"a": set(), "b": {0, 1, 2, 3}}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tasks_of_another_name_wait_for_the_input_that_an_older_topology_reads(version: int) -> None:
    newer = Topology({"renamed": Subtopology(source_topics=["words"])}, epoch=1)
    world = World(FILTER).member("a", tasks(ACTIVE, 0, 1), version=version).member("b", topology=newer)
    answers = world.answers()
    assert owned(answers) == {"a": set(), "b": {2, 3}}
    assert answers["a"].join_again
    assert owned(world.member("a").answers()) == {"a": set(), "b": {0, 1, 2, 3}}


@pytest.mark.parametrize("version", [1, 2])
def test_members_of_older_versions_run_the_topology_whose_id_they_say(version: int) -> None:
    """It is known from a member of version 3, or it is the leader's own."""
    newer = Topology({"renamed": Subtopology(source_topics=["words"])}, epoch=1)
    world = World(FILTER).member("a").member("b", topology=newer).member("c", version=version, topology=newer)
    result = world.lead()
    answers = read(result)
    assert result.topology == newer
    assert sorted(map(len, owned(answers).values())) == [0, 2, 2]
    assert answers["c"].topology == TopologyId.of(newer)
    assert codes(answers["a"]) == [StatusCode.STALE_TOPOLOGY]


def test_an_unknown_topology_gets_no_tasks_and_others_wait_until_what_it_has_is_closed() -> None:
    newer = Topology({"renamed": Subtopology(source_topics=["words"])}, epoch=1)
    world = World(FILTER).member("a", tasks(ACTIVE, 0), version=2)
    world.member("b", {TaskId("renamed", 1): ACTIVE}, version=2, topology=newer)
    answers = world.answers()
    assert owned(answers) == {"a": {0}, "b": set()}
    assert answers["b"].join_again
    assert codes(answers["b"]) == [StatusCode.STALE_TOPOLOGY]
    assert "doesn't know" in answers["b"].statuses[0].detail
    assert answers["b"].topology == TopologyId.of(newer)
    assert owned(world.member("b", version=2, topology=newer).answers()) == {"a": {0, 1, 2, 3}, "b": set()}


def test_a_changed_program_without_a_new_epoch_doesnt_take_over() -> None:
    other = Topology({"0": Subtopology(source_topics=["words", "more"])})
    world = World(FILTER).member("a", tasks(ACTIVE, 0, 1, 2, 3)).member("b", topology=other)
    world.member("c", topology=other)
    answers = world.answers()
    assert owned(answers) == {"a": {0, 1, 2, 3}, "b": set(), "c": set()}
    assert codes(answers["b"]) == codes(answers["c"]) == [StatusCode.STALE_TOPOLOGY]


@pytest.mark.parametrize("pattern", ["[", r"(a+)+\1", "a{1001}", "(" * 990, "((((a{9}){9}){9}){9}){9}", "w" * 1001])
def test_a_source_pattern_that_cant_be_used_is_a_status_of_its_member(pattern: str) -> None:
    broken = Topology({"0": Subtopology(source_topics=["words"], source_patterns=[pattern])}, epoch=1)
    world = World(FILTER).member("a", tasks(ACTIVE, 0, 1)).member("b", topology=broken)
    result = world.lead()
    answers = read(result)
    assert owned(answers) == {"a": {0, 1, 2, 3}, "b": set()}
    assert result.topology == FILTER
    [status] = answers["b"].statuses
    assert status.code is StatusCode.STALE_TOPOLOGY
    assert "can't be used: " in status.detail


def test_a_leader_whose_own_source_pattern_cant_be_used_gives_no_tasks() -> None:
    world = World(Topology({"0": Subtopology(source_patterns=["["])})).member("a").member("b", version=2)
    answers = world.answers()
    assert owned(answers) == {"a": set(), "b": set()}
    assert all(StatusCode.STALE_TOPOLOGY in codes(answer) for answer in answers.values())


def test_missing_internal_topics_are_to_be_created() -> None:
    world = World().member("a", tasks(ACTIVE, 0))
    del world.topics.counts["counts"]
    result = world.lead()
    assert result.missing == (InternalTopic("counts", partitions=4),)
    answers = read(result)
    assert not answers["a"].tasks
    assert codes(answers["a"]) == [StatusCode.MISSING_INTERNAL_TOPICS]
    world.topics.counts["counts"] = 4
    assert owned(world.answers()) == {"a": {0, 1, 2, 3}}


@pytest.mark.parametrize(
    ("partitions", "code"),
    [
        ({}, StatusCode.MISSING_SOURCE_TOPICS),
        ({"words": 4, "counts": 3}, StatusCode.INCORRECTLY_PARTITIONED_TOPICS),
    ],
)
def test_topics_that_dont_fit_leave_all_without_tasks(partitions: dict[str, int], code: StatusCode) -> None:
    world = World().member("a", tasks(ACTIVE, 0))
    world.topics.counts = partitions
    result = world.lead()
    assert codes(read(result)["a"]) == [code]
    assert not read(result)["a"].tasks
    assert {name: seen.partitions for name, seen in result.seen.items()} == {
        name: partitions.get(name) for name in ("words", "counts")
    }
    world.topics.counts = {"words": 4, "counts": 4}
    assert topics_seen(result.topology, world.topics) != result.seen


def test_a_topic_that_was_created_again_is_another_one() -> None:
    world = World().member("a")
    result = world.lead()
    assert topics_seen(result.topology, world.topics) == result.seen
    world.topics.ids["words"] = UUID(int=7)
    assert topics_seen(result.topology, world.topics) != result.seen


def test_all_shut_down_if_one_asks_for_it() -> None:
    answers = World().member("a").member("b", shutdown=True).answers()
    assert [codes(answer) for answer in answers.values()] == [[StatusCode.SHUTDOWN_APPLICATION]] * 2


def test_a_static_member_that_is_back_gets_its_tasks() -> None:
    world = World(FILTER).member("a-1", instance_id="a").member("b-1", instance_id="b")
    result = world.lead()
    before = owned(read(result))
    del world.members["b-1"]
    world.member("a-1", tasks(ACTIVE, *before["a-1"]), instance_id="a").member("0-b", instance_id="b")
    assert owned(world.answers(result.static)) == {"a-1": before["a-1"], "0-b": before["b-1"]}


def test_a_rebalance_that_places_nothing_forgets_no_static_member() -> None:
    world = World(FILTER).member("a", instance_id="a").member("b", instance_id="b")
    result = world.lead()
    before = owned(read(result))
    del world.members["b"], world.topics.counts["words"]
    static = world.member("a", instance_id="a").lead(result.static).static
    assert static == result.static
    world.topics.counts["words"] = 4
    assert owned(world.member("b", instance_id="b").answers(static)) == before


def test_static_members_are_forgotten_when_others_have_their_tasks() -> None:
    world = World(FILTER, partitions=2).member("a", instance_id="a").member("b", instance_id="b")
    result = world.lead()
    del world.members["b"]
    world.member("a", read(result)["a"].tasks, instance_id="a")
    assert world.lead(result.static).static == {"a": {task(0), task(1)}}


def test_standbys_are_in_other_racks() -> None:
    world = World(num_standby_replicas=1, rack_aware_assignment_tags=("zone",))
    for name in "abcd":
        world.member(name, client_tags={"zone": "east" if name in "ab" else "west"})
    answers = world.answers()
    for number in range(4):
        racks = {
            role: name in "ab" for name, each in answers.items() for t, role in each.tasks.items() if t == task(number)
        }
        assert racks[ACTIVE] != racks[STANDBY]
    assert codes(world.member("d").answers()["d"]) == [StatusCode.MISSING_CLIENT_TAGS]


def test_members_hear_who_answers_queries() -> None:
    world = World(FILTER, partitions=2).member("a", user_endpoint=Endpoint("here", 80)).member("b")
    answers = world.answers()
    [number] = owned(answers)["a"]
    expected = {Endpoint("here", 80): EndpointPartitions(frozenset({TopicPartition("words", number)}), frozenset())}
    assert answers["a"].endpoints == answers["b"].endpoints == expected


def test_a_group_that_would_outgrow_its_record_does_without_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(num_standby_replicas=1)
    for name in "ab":
        world.member(name, user_endpoint=Endpoint(name, 1))
    result = world.lead()
    assert all(each.endpoints for each in read(result).values())
    size = sum(len(each.subscription) + len(result.assignments[name]) for name, each in world.members.items())
    monkeypatch.setattr(leader, "LARGEST_GROUP", size)
    assert world.lead() == result
    monkeypatch.setattr(leader, "LARGEST_GROUP", size - 1)
    smaller = world.lead()
    assert not any(each.endpoints for each in read(smaller).values())
    assert owned(read(smaller)) == owned(read(result))
    assert f"{size} bytes" in smaller.messages[0]


def test_members_of_one_process_never_have_a_task_twice() -> None:
    """The second waits until the first has closed its copy: they share the disk."""
    world = World(partitions=2, max_warmup_replicas=0).member("a", tasks(ACTIVE, 0, 1), process_id="one")
    answers = world.member("b", process_id="one").answers()
    assert not answers["b"].tasks
    assert answers["a"].join_again


def test_a_large_group_is_placed_by_the_quick_assignor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kohort.client.streams.classic.placing.MOST_EFFORT", 7)
    used: list[str] = []
    from kohort.client.streams.classic import placing

    place = placing.place

    def spied(assignor: str, group: model.Group) -> model.Placement:
        used.append(assignor)
        return place(assignor, group)

    monkeypatch.setattr(placing, "place", spied)
    World().member("a").answers()
    World().member("a").member("b").answers()
    assert used == ["optimal", "sticky"]
