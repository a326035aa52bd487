"""All that a shard knows of its streams groups, soft state and timers included, to be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kohort.coordinator.shard import GroupShard
from kohort.coordinator.timing_wheel import Timer

DERIVED = {"revision", "cached_results", "_moving", "ends", "_with_offset"}
"""What the rest leads to at any time, and what is cached until anything changes."""


def snapshot(shard: GroupShard) -> dict[str, Any]:
    """Returns the state of all streams groups as plain values, and the timeouts of their members."""
    streams = shard.streams
    return {
        "groups": {group_id: _plain(streams.get(group_id)) for group_id in streams.group_ids()},
        "timeouts": {
            key: (timer.last_heartbeat, timer.session_timeout_ms, timer.rebalance_deadline, timer.waiting)
            for key, timer in streams._timers._timers.items()
        },
    }


def _plain(value: object) -> Any:
    if isinstance(value, Timer):
        return value.waiting
    if isinstance(value, Mapping):
        return {repr(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        each_plain = [_plain(each) for each in value]
        return sorted(each_plain, key=repr) if isinstance(value, (set, frozenset)) else each_plain
    if type(value).__module__.startswith("kohort.coordinator") or type(value).__name__ == "TaskOffsets":
        return {name: _plain(getattr(value, name)) for name in _attributes(value) if name not in DERIVED}
    return repr(value)


def _attributes(value: object) -> Collection[str]:
    def names() -> Iterator[str]:
        yield from getattr(value, "__dict__", ())
        for kind in type(value).__mro__:
            slots = getattr(kind, "__slots__", ())
            yield from (slots,) if isinstance(slots, str) else slots

    return [name for name in names() if hasattr(value, name)]
