"""That what a replay of the log comes to is what is live."""

from __future__ import annotations

from kohort.coordinator.shard import GroupShard
from kohort.coordinator.streams.group import StreamsGroup
from tests.simulation.books import InvariantError


def compare(group_id: str, live: GroupShard, replayed: GroupShard) -> None:
    """Raise `InvariantError` if two shards differ in what they know of a group that outlives a restart."""
    one, other = live.streams.get(group_id), replayed.streams.get(group_id)
    if one is None or other is None:
        if not (one is other or _is_new(one or other)):
            raise InvariantError(f"{group_id} is {one}, a replay makes it {other}")
        return
    ours, theirs = _persisted(one), _persisted(other)
    for what, value in ours.items():
        if value != theirs[what]:
            raise InvariantError(f"{group_id}: {what} is {value}, a replay makes it {theirs[what]}")


def _is_new(group: StreamsGroup | None) -> bool:
    """Whether a group has no record yet."""
    return group is not None and group.topology is None and not group.members


def _persisted(group: StreamsGroup) -> dict[str, object]:
    """All of a group that its records tell, and what follows from that."""
    return {
        "epoch": group.epoch,
        "assignment epoch": group.assignment_epoch,
        "metadata hash": group.metadata_hash,
        "validated topology epoch": group.validated_topology_epoch,
        "configs": dict(group.configs),
        "topology": group.topology,
        "static members": group.static_ids,
        "target": {member_id: dict(tasks) for member_id, tasks in group.target.items()},
        "metadata": {member_id: member.metadata for member_id, member in group.members.items()},
        "current": {member_id: member.current for member_id, member in group.members.items()},
        "state": group.state,
        "holders": {
            task: dict(group.ownership.holders(task))
            for member in group.members.values()
            for task, _ in member.current.held()
        },
        "number of tasks held": len(group.ownership),
    }
