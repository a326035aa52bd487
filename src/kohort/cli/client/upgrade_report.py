"""The plan of an upgrade as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from kohort.cli.client.tables import table

if TYPE_CHECKING:
    from kohort.spark.program.upgrade_plan import UpgradePlan


def plan_table(plan: UpgradePlan) -> RenderableType:
    """A line for each store, source and internal topic."""
    return table(("What", "Name", "Becomes", "About"), ((*row[:3], row[3] or None) for row in plan.rows))


def plan_as_json(plan: UpgradePlan) -> dict[str, Any]:
    """The plan, with what has to be done."""
    return {
        "application_id": plan.application_id,
        "stores": [asdict(each) for each in plan.stores],
        "sources": [{"topic": each.topic, "fate": each.fate} for each in plan.sources],
        "topics": [asdict(each) for each in plan.topics],
        "members": plan.members,
        "topology_changed": plan.topology_changed,
        "remarks": plan.remarks,
    }
