"""Checks transforms by their plans: whether they pass columns on, and whether they treat each row by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkException

from kohort.spark.errors import ProgramError
from kohort.spark.internals import NodeName, PlanNode, analyzed, error_sentence, unlogged_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OVER_SEVERAL: Final[dict[str, str]] = {
    NodeName.AGGREGATE: "groupBy or an aggregate",
    NodeName.CO_GROUPED_IN_ARROW: "cogroup().applyInArrow",
    NodeName.CO_GROUPED_IN_PANDAS: "cogroup().applyInPandas",
    NodeName.DEDUPLICATE: "dropDuplicates",
    NodeName.DISTINCT: "distinct",
    NodeName.EXCEPT: "subtract",
    NodeName.EXCEPT_ALL: "exceptAll",
    NodeName.GROUPED_IN_ARROW: "groupBy().applyInArrow",
    NodeName.GROUPED_IN_PANDAS: "groupBy().applyInPandas",
    NodeName.INTERSECT: "intersect",
    NodeName.INTERSECT_ALL: "intersectAll",
    NodeName.LIMIT: "limit",
    NodeName.OFFSET: "offset",
    NodeName.WINDOW: "a window function",
}


def passed(frame: DataFrame, source: DataFrame) -> dict[str, tuple[str, ...]]:
    """The columns of `source` that a plan passes on as they are, and what each is called then: first its own name, if
    one of them is that.

    It goes by the ids by which Spark tells columns apart: what is passed on keeps its id, or is renamed; what is
    computed has another. A union has the ids of its first side, whatever is in the others: none are passed there.
    """
    plan = analyzed(frame)
    if _has_union(plan):
        return {}
    sources: dict[int, int] = {}

    def walk(node: PlanNode) -> None:
        for child in node.children:
            walk(child)
        for new, old in node.renamed.items():
            sources[new] = sources.get(old, old)

    walk(plan)
    names: dict[int, list[str]] = {}
    for column in plan.output:
        names.setdefault(sources.get(column.id, column.id), []).append(column.name)
    # Those of `source` may have been renamed before, too.
    before = {column.name: sources.get(column.id, column.id) for column in analyzed(source).output}
    return {
        own: tuple(sorted(names[origin], key=lambda name: name != own))
        for own, origin in before.items()
        if origin in names
    }


def _has_union(node: PlanNode) -> bool:
    return node.name == NodeName.UNION or any(map(_has_union, node.children))


def makes_several(frame: DataFrame) -> bool:
    """Whether a plan makes several rows of one, or none, as explode does."""

    def walk(node: PlanNode) -> bool:
        return node.name == NodeName.GENERATE or any(map(walk, node.children))

    return walk(analyzed(frame))


def over_several_rows(frame: DataFrame, source: DataFrame) -> str | None:
    """What in a plan goes over several rows of `source`, or adds some, and what that would do; None if nothing does.

    A static DataFrame may be joined, whatever it is made of.
    """
    stream = analyzed(source).first_leaf
    found: list[str] = []
    others: list[str] = []

    def walk(node: PlanNode) -> bool:
        """Whether the stream's rows go through this node."""
        if not node.children:
            # In a join with itself one side has new ids, but is the same otherwise.
            return node.same_result(stream)
        within = [walk(child) for child in node.children]
        if any(within):
            if node.name in _OVER_SEVERAL:
                found.append(_OVER_SEVERAL[node.name])
            elif node.name == NodeName.UNION and not all(within):
                others.append("a union with other rows would add them again in each epoch. Write them to a topic, once")
            elif node.name == NodeName.JOIN:
                found.extend(_join(node, within))
        return any(within)

    walk(analyzed(frame))
    if found:
        return (
            f"{found[-1]} would go over those rows that happen to be in an epoch. Group with "
            ".group_by(…).aggregate(…), which goes over all there ever were"
        )
    return others[-1] if others else None


def _join(node: PlanNode, within: list[bool]) -> Iterator[str]:
    if all(within):
        yield "a join of the stream with itself"
    elif within.index(False) in node.outer_sides:
        yield "a join that keeps all rows of the other side"


def called(where: str, function: Callable[[DataFrame], DataFrame], frame: DataFrame) -> DataFrame:
    """Calls a function of the user's.

    Raises:
        ProgramError: it fails, or makes something else.
    """
    from pyspark.sql import DataFrame

    try:
        with explained(where):
            made = function(frame)
    except ProgramError:
        raise
    except Exception as error:
        raise ProgramError(f"{where} failed: {type(error).__name__}: {error}") from error
    if not isinstance(made, DataFrame):
        what = "None: is a return missing?" if made is None else repr(made)
        raise ProgramError(f"{where} must return a DataFrame, but it returned {what}")
    if made.isStreaming:
        raise ProgramError(
            f"{where} has a stream of Spark's own in it, of spark.readStream, which would never end in an epoch: read "
            f"its topic by app.stream or app.table, and join that"
        )
    return made


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turns errors of Spark's into a `ProgramError` that says where in the program, and what Spark says."""
    try:
        with unlogged_errors():
            yield
    except PySparkException as error:
        raise ProgramError(f"{where}: {error_sentence(error)}") from error
