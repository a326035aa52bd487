"""Placements and what they are worth, for scripts."""

from __future__ import annotations

from typing import Any

from kohort.cli.placing.outcome import Comparison, Outcome
from kohort.cli.placing.partitions import by_subtopology, tasks_by_member
from kohort.coordinator.placement.metrics import Balance, Metrics, Restore

__all__ = ["comparison_as_json"]


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """`now` (null where nobody has anything) and, by assignor, `members`, `metrics` and `moves`."""
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
    active, standby = tasks_by_member(outcome.placement)
    return {
        member.id: {
            "process": member.process,
            "active": by_subtopology(active.get(member.id, ())),
            "standby": by_subtopology(standby.get(member.id, ())),
        }
        for member in outcome.group.members
    }


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
