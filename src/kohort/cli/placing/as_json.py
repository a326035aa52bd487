"""Placements and their metrics as JSON, for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kohort.coordinator.placement.metrics import Balance, Metrics, Restore
from kohort.coordinator.placement.outcome import Comparison, Outcome
from kohort.streams.tasks import Role, TaskId, by_subtopology


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """`now` (null if no member has tasks) and, by assignor, `members`, `metrics` and `moves`."""
    return {
        "now": None if comparison.now is None else _outcome(comparison.now),
        "assignors": {
            name: _outcome(outcome)
            | {
                "moves": [
                    {
                        "subtopology": move.task.subtopology,
                        "partition": move.task.partition,
                        "from": move.source,
                        "to": move.target,
                        "restore": _restore(move.restore),
                    }
                    for move in outcome.moves
                ]
            }
            for name, outcome in comparison.outcomes.items()
        },
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {"members": _members(outcome), "metrics": _metrics(outcome.metrics)}


def _members(outcome: Outcome) -> dict[str, Any]:
    placed = outcome.placement.by_member()
    return {
        member.id: {
            "process": member.process,
            "active": _tasks(placed.get(member.id, {}), Role.ACTIVE),
            "standby": _tasks(placed.get(member.id, {}), Role.STANDBY),
        }
        for member in outcome.group.members
    }


def _tasks(tasks: Mapping[TaskId, Role], role: Role) -> dict[str, tuple[int, ...]]:
    return by_subtopology(task for task, has in tasks.items() if has is role)


def _metrics(metrics: Metrics) -> dict[str, Any]:
    return {
        "imbalance": metrics.imbalance,
        "subtopologies": {name: _balance(balance) for name, balance in metrics.subtopologies.items()},
        "stateful": _balance(metrics.stateful),
        "total": _balance(metrics.total),
        "state_stores": {
            "least": metrics.state_stores.least,
            "most": metrics.state_stores.most,
            "spread": float(metrics.state_stores.spread),
        },
        "unplaced": metrics.unplaced,
        "owned": metrics.owned,
        "moved": metrics.moved,
        "moved_stateful": metrics.moved_stateful,
        "restore": _restore(metrics.restore),
        "standbys_wanted": metrics.standbys_wanted,
        "standbys_placed": metrics.standbys_placed,
        "standby_restore": _restore(metrics.standby_restore),
        "racks": {tag: {"apart": spread.apart, "possible": spread.possible} for tag, spread in metrics.racks.items()},
    }


def _balance(balance: Balance) -> dict[str, int]:
    return {
        "tasks": balance.tasks,
        "members": balance.members,
        "least": balance.least,
        "most": balance.most,
        "imbalance": balance.imbalance,
    }


def _restore(restore: Restore) -> dict[str, int]:
    return {"tasks": restore.tasks, "records": restore.records, "stores": restore.stores}
