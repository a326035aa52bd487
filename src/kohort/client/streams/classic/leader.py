"""The leader of a classic streams group: gives each member its tasks (KIP-441, KIP-268, KIP-262).

What a rebalance does:

    members                                what they get
    -------------------------------------  ------------------------------------------------------------------------
    some are too new for the leader        those the version to join again with, while they keep what they have; all
                                           others what they have
    one can't be read, or stays too new    it nothing; others no task that it may have, until it says that it has none
    one runs another topology              it nothing, and a status; so it does if its source patterns can't be used
    topics are missing, or don't fit       all nothing, and a status
    all others                             tasks where placement and warm-ups want them, as far as old owners have
                                           closed them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kohort.client.streams.classic.assignment import Assignment, encode_assignment
from kohort.client.streams.classic.group_members import GroupMembers, GroupTopology, choose_topology, read_members
from kohort.client.streams.classic.hand_over import HandedOver, Held, hand_over
from kohort.client.streams.classic.led_group import (
    GroupAssignment,
    JoinedMember,
    LeaderSettings,
    Topics,
    TopicSeen,
)
from kohort.client.streams.classic.placing import place_tasks
from kohort.client.streams.classic.versions import WITH_OFFSETS, ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.configured_topology import ConfiguredTopology, configure, topics_of
from kohort.streams.endpoints import Instance, partitions_by_endpoint
from kohort.streams.statuses import Status, StatusCode
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology

LARGEST_GROUP: Final = 900_000
"""Bytes of all subscriptions and assignments: the coordinator writes them as one record, by default of 1 MB at most."""


def lead(
    members: Sequence[JoinedMember],
    leader_id: str,
    own: Topology,
    topics: Topics,
    settings: LeaderSettings,
    static: Mapping[str, frozenset[TaskId]] | None = None,
) -> GroupAssignment:
    """Returns what all members get in a rebalance. Never raises for what members wrote.

    Args:
        members: all members, the leader among them.
        leader_id: the leader's member id.
        own: the leader's topology.
        topics: the topics as they are now.
        static: active tasks of static members, if this member led the last rebalance (`LeaderMemory.recalled`).
    """
    static = static or {}
    group = read_members(members, settings.latest)
    runs = choose_topology(group, own)
    configured = configure(runs.topology, topics.partitions, topics.matching)
    decided = _decide(group, runs, configured, settings, static)
    assignments, too_large = _encoded(_Answers(group, runs, configured, decided, settings), members, leader_id)
    return GroupAssignment(
        assignments=assignments,
        topology=runs.topology,
        missing=configured.missing,
        seen=topics_seen(runs.topology, topics),
        moving=decided.moving,
        messages=(
            *(f"member {name} can't be read: {why}" for name, why in sorted(group.unreadable.items())),
            *(f"member {name} is newer than its leader" for name in sorted(group.too_new)),
            *(f"member {name} gets no tasks: {why}" for name, why in sorted(runs.stale.items())),
            *too_large,
        ),
        static=_static(group, decided, static),
    )


def topics_seen(topology: Topology, topics: Topics) -> dict[str, TopicSeen]:
    """Returns what an assignment depends on, of topics that patterns match as well."""
    return {
        name: TopicSeen(topics.topic_id(name), topics.partitions(name))
        for name in sorted(topics_of(topology, topics.matching))
    }


@dataclass(frozen=True, slots=True)
class _Decided:
    """What a rebalance comes to.

    Attributes:
        handed_over: the tasks of members that could be read.
        placed: tasks were placed; if not, members have what they had, or nothing.
        moving: tasks that wait for warm-ups.
    """

    handed_over: HandedOver
    placed: bool = False
    moving: int = 0


def _decide(
    group: GroupMembers,
    runs: GroupTopology,
    configured: ConfiguredTopology,
    settings: LeaderSettings,
    static: Mapping[str, frozenset[TaskId]],
) -> _Decided:
    nobody = HandedOver({name: {} for name in group.read}, frozenset(), frozenset())
    if group.too_new:
        return _Decided(replace(nobody, tasks={name: each.tasks for name, each in group.read.items()}))
    if not configured.ready:
        return _Decided(nobody)
    refined = place_tasks(group, group.read.keys() - runs.stale.keys(), configured, settings, static)
    held = {name: Held(group.process(name), runs.by_member[name], each.tasks) for name, each in group.read.items()}
    unknown = {name for name, each in held.items() if each.topology is None and each.tasks}
    handed_over = hand_over(refined.tasks, held, runs.topology, unknown | set(group.hidden))
    all_members = replace(handed_over, tasks={**nobody.tasks, **handed_over.tasks})
    return _Decided(all_members, placed=True, moving=len(refined.moving))


def _static(
    group: GroupMembers, decided: _Decided, before: Mapping[str, frozenset[TaskId]]
) -> Mapping[str, frozenset[TaskId]]:
    """Returns the active tasks of static members, and those that members had which nobody has yet."""
    if not decided.placed:
        return before
    active = {
        name: frozenset(task for task, role in tasks.items() if role is Role.ACTIVE)
        for name, tasks in decided.handed_over.tasks.items()
    }
    taken = frozenset[TaskId]().union(*active.values())
    left = {instance_id: tasks - taken for instance_id, tasks in before.items()}
    given = {group.static[name]: tasks for name, tasks in active.items() if tasks and name in group.static}
    return {instance_id: tasks for instance_id, tasks in {**left, **given}.items() if tasks}


def _encoded(
    answers: _Answers, members: Sequence[JoinedMember], leader_id: str
) -> tuple[dict[str, bytes], Sequence[str]]:
    """Returns the bytes for SyncGroup, without endpoints if there were too many, and what is to be said of that.

    Each member is told of all endpoints, so they are what grows with the square of the group.
    """
    subscriptions = sum(len(each.subscription) for each in members)
    assignments = answers.encoded(leader_id)
    size = subscriptions + sum(map(len, assignments.values()))
    if size <= LARGEST_GROUP:
        return assignments, ()
    assignments = answers.encoded(leader_id, with_endpoints=False)
    left = subscriptions + sum(map(len, assignments.values()))
    message = (
        f"subscriptions and assignments have {size} bytes, which the broker may not store at once: no endpoints are "
        f"given out, which leaves {left} bytes"
    )
    return assignments, (message,)


class _Answers:
    """The assignments of all members, as messages."""

    def __init__(
        self,
        group: GroupMembers,
        runs: GroupTopology,
        configured: ConfiguredTopology,
        decided: _Decided,
        settings: LeaderSettings,
    ) -> None:
        self._group, self._runs, self._decided, self._settings = group, runs, decided, settings
        self._configured = configured
        self._warms_up = group.version >= WITH_OFFSETS
        self._shutdown = sorted(name for name, each in group.read.items() if each.shutdown)

    def encoded(self, leader_id: str, *, with_endpoints: bool = True) -> dict[str, bytes]:
        """Returns the bytes for SyncGroup, by member id."""
        settings, group = self._settings, self._group
        any_member = Assignment(version=group.version, supported=settings.latest, common=group.common)
        too_new = replace(any_member, version=settings.latest, error=ErrorCode.SUBSCRIPTION_TOO_NEW)
        answers = {name: encode_assignment(too_new) for name in group.too_new}
        for name, why in group.unreadable.items():
            detail = Status(StatusCode.ASSIGNMENT_DELAYED, f"The leader can't read the subscription: {why}.")
            answers[name] = encode_assignment(
                replace(
                    any_member,
                    error=ErrorCode.SUBSCRIPTION_UNREADABLE,
                    join_again=name in self._decided.handed_over.awaited,
                    statuses=(detail,),
                )
            )
        endpoints = self._endpoints() if with_endpoints else []
        in_charge = leader_id if leader_id in group.read else min(group.read, default="")
        for name in group.read:
            leads = name == in_charge
            assignment = replace(
                any_member,
                join_again=name in self._decided.handed_over.awaited,
                statuses=tuple(self._statuses(name)),
                tasks=self._tasks(name),
                acceptable_lag=settings.acceptable_recovery_lag,
                probing_ms=settings.probing_rebalance_interval_ms if leads and self._decided.moving else None,
                topology=group.topology_ids[name],
            )
            answers[name] = encode_assignment(assignment, endpoints)
        return answers

    def _tasks(self, name: str) -> Mapping[TaskId, Role]:
        """Returns a member's tasks; a version without warm-ups has standbys instead."""
        tasks = self._decided.handed_over.tasks[name]
        if self._warms_up:
            return tasks
        return {task: Role.STANDBY if role is Role.WARMUP else role for task, role in tasks.items()}

    def _statuses(self, name: str) -> list[Status]:
        found = []
        if (stale := self._runs.stale.get(name)) is not None:
            found.append(Status(StatusCode.STALE_TOPOLOGY, stale))
        if (problem := self._configured.problem) is not None:
            found.append(problem)
        if self._shutdown:
            why = f"Member {self._shutdown[0]} asked that the whole application shut down."
            found.append(Status(StatusCode.SHUTDOWN_APPLICATION, why))
        if name in self._decided.handed_over.waiting and not self._decided.handed_over.tasks[name]:
            found.append(Status(StatusCode.ASSIGNMENT_DELAYED, "There are no tasks yet: others have to close them."))
        tags = self._group.read[name].client_tags
        wanted = self._settings.rack_aware_assignment_tags if self._warms_up else ()
        if missing := [tag for tag in wanted if tag not in tags]:
            why = f"Standbys are spread over client tags that the member doesn't have: {', '.join(missing)}."
            found.append(Status(StatusCode.MISSING_CLIENT_TAGS, why))
        return found

    def _endpoints(self) -> list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]:
        if not self._warms_up:
            return []
        members = ((each.user_endpoint, name) for name, each in self._group.read.items())
        instances = [
            Instance(endpoint.host, endpoint.port, self._tasks(name))
            for endpoint, name in members
            if endpoint is not None
        ]
        return partitions_by_endpoint(instances, self._configured)
