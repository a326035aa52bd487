"""Places the tasks of a classic streams group as the broker does those of a streams group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from kohort.client.streams.classic.group_members import GroupMembers
from kohort.client.streams.classic.led_group import LeaderSettings
from kohort.client.streams.classic.versions import WITH_OFFSETS
from kohort.coordinator.placement import model, place
from kohort.streams.configured_topology import ConfiguredTopology
from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId
from kohort.streams.warmups import CurrentMember, Refined, refine

log = logging.getLogger(__name__)

_FALLBACK: Final = "sticky"

MOST_EFFORT: Final = 1_000_000
"""Most tasks times members that `optimal` is asked to place. That takes seconds, and all members wait for it."""


def place_tasks(
    members: GroupMembers,
    current: Iterable[str],
    configured: ConfiguredTopology,
    settings: LeaderSettings,
    static: Mapping[str, frozenset[TaskId]],
) -> Refined:
    """Returns the tasks that each member is to have now: the target, with tasks that stay while others warm up.

    Before version 3 nobody has warm-ups, since there are no lags by which they would end.

    Args:
        current: members that run the group's topology.
        static: active tasks that static members had, by instance id.
    """
    names = sorted(current)
    offsets = _offsets(members, names)
    group = _group(members, names, configured, settings, static, offsets)
    target = _place(group, settings.assignor).by_member()
    return refine(
        {name: target.get(name, {}) for name in names},
        {name: CurrentMember(members.process(name), members.read[name].tasks) for name in names},
        offsets,
        {each.id for each in configured.subtopologies.values() if each.state_stores},
        settings.max_warmup_replicas if members.version >= WITH_OFFSETS else 0,
        settings.acceptable_recovery_lag,
    )


def _group(
    members: GroupMembers,
    names: Iterable[str],
    configured: ConfiguredTopology,
    settings: LeaderSettings,
    static: Mapping[str, frozenset[TaskId]],
    offsets: TaskOffsets,
) -> model.Group:
    owned = {
        name: frozenset(task for task, role in members.read[name].tasks.items() if role is Role.ACTIVE)
        for name in names
    }
    taken = frozenset[TaskId]().union(*owned.values())

    def active(name: str) -> frozenset[TaskId]:
        return owned[name] or static.get(members.static.get(name, ""), frozenset()) - taken

    def tails(name: str, task: TaskId) -> bool:
        return name in owned and task in members.read[name].tasks

    stores = _state_stores(members, names, configured)
    return model.Group(
        subtopologies=tuple(
            model.SubtopologyTasks(each.id, each.tasks, stores[each.id]) for each in configured.subtopologies.values()
        ),
        members=tuple(
            model.Member(
                id=name,
                process=members.process(name),
                tags=members.read[name].client_tags,
                active=active(name),
                standby=frozenset(task for task, role in members.read[name].tasks.items() if role is not Role.ACTIVE),
            )
            for name in names
        ),
        standbys=settings.num_standby_replicas,
        rack_tags=settings.rack_aware_assignment_tags,
        lags=offsets.lags(tails),
        ends=offsets.ends,
        acceptable_lag=settings.acceptable_recovery_lag,
    )


def _state_stores(members: GroupMembers, names: Iterable[str], configured: ConfiguredTopology) -> dict[str, int]:
    """Returns the state stores of a task of each subtopology (KIP-262).

    Stores without a changelog aren't in the topology, but they are in what members say of tasks that they have had.
    """
    stores = {each.id: each.state_stores for each in configured.subtopologies.values()}
    for name in names:
        for task, count in members.read[name].state_stores.items():
            if task.subtopology in stores:
                stores[task.subtopology] = max(count, stores[task.subtopology])
    return stores


def _offsets(members: GroupMembers, names: Iterable[str]) -> TaskOffsets:
    offsets = TaskOffsets()
    for name in names:
        subscription = members.read[name]
        if subscription.topology is not None:  # since version 3, which has offsets as well
            offsets = offsets.report(name, members.process(name), subscription.offsets, subscription.ends)
    return offsets


def _place(group: model.Group, assignor: str) -> model.Placement:
    tasks = sum(each.partitions for each in group.subtopologies)
    if tasks * len(group.members) > MOST_EFFORT:
        log.info("group is large tasks=%d members=%d assignor=%s", tasks, len(group.members), _FALLBACK)
        return place(_FALLBACK, group)
    try:
        return place(assignor, group)
    except Exception:
        log.exception("placement failed, falling back to another assignor assignor=%s", _FALLBACK)
        return place(_FALLBACK, group)
