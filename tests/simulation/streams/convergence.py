"""Convergence of a group that is left alone: every member has its target assignment, and all of it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tests.simulation.books import InvariantError
from tests.simulation.streams.checker import MISSING_CLIENT_TAGS
from tests.simulation.streams.ledger import STABLE
from tests.simulation.streams.member import Member
from tests.simulation.streams.process import Process

if TYPE_CHECKING:
    from tests.simulation.streams.world import StreamsWorld


def why_not_converged(world: StreamsWorld, processes: Mapping[str, list[Process]]) -> str:
    """Why some group hasn't converged; empty if all have."""
    for group_id, of_group in processes.items():
        for reason in _reasons(world, group_id, of_group):
            return f"{group_id}: {reason}"
    return ""


def _reasons(world: StreamsWorld, group_id: str, processes: list[Process]) -> Iterator[str]:
    group = world.checker.ledger.group(group_id)
    members = {member.member_id: member for process in processes for member in process.members}
    if len(group.current) >= world.settings_of(group_id).max_size:  # the others don't get in
        members = {name: member for name, member in members.items() if name in group.current}
    if group.current.keys() != members.keys():
        yield f"members {sorted(group.current)}, alive are {sorted(members)}"
        return
    for member in members.values():
        yield from _of_member(world, member)
    if members:
        for task in processes[0].application.tasks(world.topics):
            if (runners := world.runners(group_id, task)) != 1:
                yield f"{task} is run by {runners} members"


def _of_member(world: StreamsWorld, member: Member) -> Iterator[str]:
    group = world.checker.ledger.group(member.group_id)
    current, target = group.current[member.member_id], group.target.get(member.member_id)
    epochs = {member.epoch, current.epoch, group.assignment_epoch, group.epoch}
    if len(epochs) > 1 or current.state != STABLE:
        yield f"{member}: {current}, assignment epoch {group.assignment_epoch}, group epoch {group.epoch}"
    elif not member.current == member.target == current.assigned == target or set(member.held) != set().union(*target):
        yield f"{member} has {member.held}, {member.current}; the log says {current}, the target is {target}"
    elif target.warmup:
        yield f"{member} is still to warm up {target.warmup}"
    else:
        for task in member.held:
            copy = member.copy(task)
            if copy is not None and copy.lag(world.now):
                yield f"{member} restores {task}"


def check_convergence(world: StreamsWorld, processes: Mapping[str, list[Process]]) -> None:
    """Groups that are at rest look so from outside, and nothing is left behind."""
    members = 0
    for group_id in processes:
        current = world.checker.ledger.group(group_id).current
        members += len(current)
        _check_answers(world, processes[group_id])
        state = world.shard.streams.describe(group_id).group_state if current else "Empty"
        if state != ("Stable" if current else "Empty"):
            raise InvariantError(f"{group_id} is at rest, and {state}")
        if not current:
            world.delete_group(group_id)
    if len(world.wheel) > members:
        raise InvariantError(f"{members} members have {len(world.wheel)} timers")


def _check_answers(world: StreamsWorld, processes: list[Process]) -> None:
    """Nobody is told of any trouble, and everybody knows which instance has which partitions."""
    members = [member for process in processes for member in process.members if member.epoch]
    expected: dict[tuple[str, int], tuple[set[tuple[str, int]], set[tuple[str, int]]]] = {}
    for member in members:
        if member.habits.endpoint is not None:
            parts = {part.id: part for part in member.application.parts}
            active, standby = expected.setdefault(member.habits.endpoint, (set(), set()))
            for task in member.current.active | member.current.standby:
                into = active if task in member.current.active else standby
                into.update((topic, task.partition) for topic in member.application.sources(parts[task.subtopology]))
    for member in members:
        wanted = world.settings_of(member.group_id).rack_aware_assignment_tags
        lacking = member.client.version > 0 and not member.process.tags.keys() >= set(wanted)
        if member.statuses != [MISSING_CLIENT_TAGS] * lacking:
            raise InvariantError(f"{member} is at rest, and told {member.statuses}")
        told = {endpoint: (set(active), set(standby)) for endpoint, (active, standby) in member.endpoints.items()}
        if told != expected:
            raise InvariantError(f"{member} was told of {told}; {expected} is true")
