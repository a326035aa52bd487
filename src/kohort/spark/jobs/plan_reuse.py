"""Says which plans may run for several epochs, under `session_settings`."""

from __future__ import annotations

from pyspark.sql import DataFrame

from kohort.spark.internals import NodeName, PlanNode, analyzed, executed
from kohort.spark.program.internal_columns import PARTITION


def is_reusable(frame: DataFrame) -> bool:
    """Whether running this plan again computes everything again.

    What went through an exchange or came from a subquery would be taken from the first run; the current time and the
    seeds of random numbers are chosen once a plan.
    """
    return is_the_same_each_time(frame) and _runs_again(executed(frame))


def is_the_same_each_time(frame: DataFrame) -> bool:
    """Whether building this plan once more would give no other, if it reads nothing but the epoch's records."""
    plan = analyzed(frame)
    return not (plan.has_random_numbers or plan.has_subqueries or plan.reads_clock)


def reads_input_alone(frame: DataFrame, *, sides: bool) -> bool:
    """Whether a plan joins nothing to its input, such as files that are listed when it is built.

    Args:
        sides: whether the input has two sides, which are united.
    """
    return _where_several_meet(analyzed(frame)) == ([NodeName.UNION] if sides else [])


def _where_several_meet(node: PlanNode) -> list[str]:
    mine = [node.name] if len(node.children) > 1 else []
    return mine + [name for child in node.children for name in _where_several_meet(child)]


def keeps_splits(frame: DataFrame) -> bool:
    """Whether rows of a partition are still in one task of Spark's: nothing is shuffled, joined or united since they
    were read, or laid by partition.
    """
    node = executed(frame)
    while len(node.children) == 1 and not node.is_exchange:
        (node,) = node.children
    return node.lays_by(PARTITION) if node.is_exchange else not node.children


def _runs_again(node: PlanNode) -> bool:
    return not node.is_exchange and all(map(_runs_again, node.children))
