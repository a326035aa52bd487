"""Validation of a group."""

from __future__ import annotations

from collections.abc import Iterable

from kohort.coordinator.placement.model import Group


def check(group: Group) -> None:
    """Raises ValueError, naming the field, for a group that makes no sense.

    Unknown names (previous tasks that no longer exist, lags of processes that are gone) are no error: assignors ignore
    them.
    """
    _unique("subtopologies", (subtopology.id for subtopology in group.subtopologies))
    for subtopology in group.subtopologies:
        _not_negative(f"subtopologies[{subtopology.id!r}].partitions", subtopology.partitions)
        _not_negative(f"subtopologies[{subtopology.id!r}].state_stores", subtopology.state_stores)
    _unique("members", (member.id for member in group.members))
    _unique("rack_tags", group.rack_tags)
    _not_negative("standbys", group.standbys)
    _not_negative("acceptable_lag", group.acceptable_lag)
    for (process, task), lag in group.lags.items():
        _not_negative(f"lags[{process!r}, {task}]", lag)
    for task, end in group.ends.items():
        _not_negative(f"ends[{task}]", end)


def _unique(field: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ValueError(f"{field}: a name is empty")
        if name in seen:
            raise ValueError(f"{field}: {name!r} is there twice")
        seen.add(name)


def _not_negative(field: str, number: int) -> None:
    if number < 0:
        raise ValueError(f"{field}: {number} is negative")
