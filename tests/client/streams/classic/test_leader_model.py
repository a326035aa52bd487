"""What holds for any leader's answer, whatever members write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.streams.classic.assignment import Assignment, decode_assignment
from kohort.client.streams.classic.leader import lead
from kohort.client.streams.classic.led_group import JoinedMember, LeaderSettings
from kohort.client.streams.classic.subscription import Subscription, encode_subscription
from kohort.client.streams.classic.versions import ErrorCode
from kohort.streams.statuses import StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

from .topics import Topics
from .world import END, PARTITIONS, TASKS, TOPOLOGY

ACTIVE = Role.ACTIVE
NEWER = Topology(TOPOLOGY.subtopologies, epoch=1)


@dataclass
class Member:
    name: str
    said: Subscription
    version: int
    latest: int
    damaged: bool

    def joined(self) -> JoinedMember:
        data = encode_subscription(self.said, self.version, self.latest)
        return JoinedMember(self.name, None, data[:-1] if self.damaged else data)

    @property
    def process(self) -> str:
        return self.said.process_id if self.version == 3 else self.name


@st.composite
def groups(draw: st.DrawFn, *, damaged: bool = True, double: bool = True) -> list[Member]:
    members = []
    free = set(TASKS)
    for name in "abcde"[: draw(st.integers(1, 5))]:
        has = draw(st.dictionaries(st.sampled_from(sorted(TASKS)), st.sampled_from(Role), max_size=5))
        if not double:
            has = {task: role for task, role in has.items() if task in free or role is not ACTIVE}
            free -= {task for task, role in has.items() if role is ACTIVE}
        offsets = draw(st.dictionaries(st.sampled_from(sorted(TASKS)), st.integers(-4, END), max_size=4))
        said = Subscription(
            tasks=has,
            offsets=offsets,
            ends=dict.fromkeys(offsets, END),
            process_id=draw(st.sampled_from(["one", name])) if double else name,
            topology=draw(st.sampled_from([TOPOLOGY, NEWER, None])) if double else TOPOLOGY,
        )
        version = draw(st.integers(1, 3))
        members.append(
            Member(name, said, version, draw(st.integers(version, 4)), damaged and draw(st.integers(0, 5)) == 0)
        )
    return members


SETTINGS = st.builds(
    LeaderSettings,
    num_standby_replicas=st.integers(0, 2),
    max_warmup_replicas=st.integers(0, 3),
    acceptable_recovery_lag=st.integers(0, END),
    latest=st.integers(1, 3),
    assignor=st.sampled_from(["optimal", "sticky"]),
)


def topics() -> Topics:
    found = Topics(words=PARTITIONS, counts=PARTITIONS, latest=PARTITIONS)
    found.counts["by-word"] = PARTITIONS
    return found


def owned(answer: Assignment) -> set[TaskId]:
    return {task for task, role in answer.tasks.items() if role is ACTIVE}


def claimed(member: Member) -> set[TaskId]:
    return {task for task, role in member.said.tasks.items() if role is ACTIVE}


@given(groups(), SETTINGS)
def test_no_task_is_given_that_another_may_run(members: list[Member], chosen: LeaderSettings) -> None:
    result = lead([each.joined() for each in members], "a", TOPOLOGY, topics(), chosen)
    answers = {name: decode_assignment(data, latest=chosen.latest) for name, data in result.assignments.items()}
    assert answers.keys() == {each.name for each in members}
    too_new = {name for name, answer in answers.items() if answer.error is ErrorCode.SUBSCRIPTION_TOO_NEW}
    assert too_new == {each.name for each in members if each.version > chosen.latest}
    given = [task for answer in answers.values() for task in owned(answer)]
    for member in members:
        answer = answers[member.name]
        for other in members:
            if other is member:
                continue
            if too_new:
                assert owned(answer) <= claimed(member)
            elif other.damaged:
                assert not (owned(answer) - claimed(member)) & claimed(other), "nobody knows that the other has it"
                if other.said.tasks:
                    assert answer.tasks.keys() <= member.said.tasks.keys(), "it may be on the same disk"
            else:
                assert not owned(answer) & claimed(other)
                if other.process == member.process:
                    assert not answer.tasks.keys() & other.said.tasks.keys() - member.said.tasks.keys()
        if answer.error is not ErrorCode.NONE:
            assert not answer.tasks
            continue
        assert answer.version <= member.version
    if not too_new:
        assert len(given) == len(set(given))
        told = any(answer.join_again for answer in answers.values())
        stale = {
            name
            for name, answer in answers.items()
            if StatusCode.STALE_TOPOLOGY in [status.code for status in answer.statuses]
        }
        able = [each for each in members if answers[each.name].error is ErrorCode.NONE and each.name not in stale]
        assert not able or set(given) == TASKS or told


@given(groups(), SETTINGS, st.randoms())
def test_the_order_of_members_makes_no_difference(
    members: list[Member], chosen: LeaderSettings, chance: object
) -> None:
    joined = [each.joined() for each in members]
    before = lead(joined, "a", TOPOLOGY, topics(), chosen)
    chance.shuffle(joined)
    assert lead(joined, "a", TOPOLOGY, topics(), chosen) == before


@given(groups(damaged=False, double=False), SETTINGS)
def test_a_group_comes_to_rest(members: list[Member], chosen: LeaderSettings) -> None:
    """Those that are told to join again do it, and so do warm-ups that have caught up."""
    static: Mapping[str, frozenset[TaskId]] = {}
    for _ in range(40):
        for member in members:
            member.version = min(member.version, chosen.latest)
        result = lead([each.joined() for each in members], "a", TOPOLOGY, topics(), chosen, static)
        static = result.static
        answers = {name: decode_assignment(data) for name, data in result.assignments.items()}
        again = False
        for member in members:
            answer = answers[member.name]
            again |= answer.join_again
            offsets = {**member.said.offsets}
            for task in answer.tasks:
                again |= answer.tasks[task] is Role.WARMUP
                if task.subtopology == "1":
                    offsets[task] = END
            member.said = Subscription(
                tasks=answer.tasks,
                offsets=offsets,
                ends=dict.fromkeys(offsets, END),
                process_id=member.said.process_id,
                topology=member.said.topology,
            )
        if not again:
            break
    else:
        raise AssertionError("the group doesn't come to rest")
    assert set().union(*(claimed(each) for each in members)) == TASKS
    assert result.moving == 0


TOPICS = st.sampled_from(["words", "counts", "by-word", "none"])
INTERNAL = st.builds(InternalTopic, TOPICS, partitions=st.integers(-1, 5))
PARTS = st.builds(
    Subtopology,
    source_topics=st.lists(TOPICS, max_size=2),
    source_patterns=st.lists(
        st.sampled_from(["w.*", "none.*", "[", "a{99999999999}", "(" * 900 + ")" * 900]), max_size=2
    ),
    repartition_sources=st.lists(INTERNAL, max_size=2),
    repartition_sinks=st.lists(TOPICS, max_size=2),
    changelogs=st.lists(INTERNAL, max_size=2),
)
TOPOLOGIES = st.builds(Topology, st.dictionaries(st.sampled_from(["", "0", "1"]), PARTS, max_size=3), st.integers(0, 2))


@given(st.lists(TOPOLOGIES, min_size=1, max_size=3), SETTINGS)
def test_no_topology_stops_a_leader(topologies: list[Topology], chosen: LeaderSettings) -> None:
    members = [Member(str(i), Subscription(topology=each), 3, 3, False) for i, each in enumerate(topologies)]
    result = lead([each.joined() for each in members], "0", TOPOLOGY, topics(), chosen)
    assert result.assignments.keys() == {each.name for each in members}
