"""What holds for every placement."""

from __future__ import annotations

from kohort.coordinator.placement import Group, Placement, TaskId
from tests.coordinator.placement.oracle import is_balanced, process_of


def check_invariants(group: Group, placement: Placement) -> None:
    """Every task once, fair shares, and standbys in processes of their own, as many as asked or possible."""
    members = {member.id: member for member in group.members}
    assert list(placement.active) == sorted(
        TaskId(each.id, n) for each in group.subtopologies for n in range(each.partitions) if group.members
    )
    assert set(placement.active.values()) <= members.keys()
    if not group.members:
        assert not placement.standby
        return
    assert is_balanced(group, placement.active)
    copies = min(group.standbys, len({process_of(member) for member in group.members}) - 1)
    stateful = {each.id for each in group.subtopologies if each.state_stores}
    assert set(placement.standby) == {task for task in placement.active if task.subtopology in stateful and copies}
    for task, keepers in placement.standby.items():
        homes = {process_of(members[name]) for name in (placement.active[task], *keepers)}
        assert len(keepers) == copies and len(homes) == copies + 1
