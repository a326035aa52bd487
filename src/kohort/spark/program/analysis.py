"""What Spark knows of a plan before it runs: columns, their identity, what goes over several rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

from kohort.spark.program.errors import ProgramError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["called", "empty", "explained", "identities", "over_several_rows", "sentence"]

_OVER_SEVERAL: Final = {
    "Aggregate": "groupBy or an aggregate",
    "Deduplicate": "dropDuplicates",
    "Distinct": "distinct",
    "Except": "subtract",
    "FlatMapCoGroupsInArrow": "cogroup().applyInArrow",
    "FlatMapCoGroupsInPandas": "cogroup().applyInPandas",
    "FlatMapGroupsInArrow": "groupBy().applyInArrow",
    "FlatMapGroupsInPandas": "groupBy().applyInPandas",
    "GlobalLimit": "limit",
    "Intersect": "intersect",
    "Offset": "offset",
    "Pivot": "pivot",
    "Tail": "tail",
    "Window": "a window function",
}
_CONNECT: Final = (
    "this is a session of Spark Connect; a streams application needs a Spark driver in its own process: "
    'SparkSession.builder.master("local[*]") or a cluster\'s master, without .remote(…)'
)
_CODE: Final = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE: Final = re.compile(r"\s*SQLSTATE: \w+;?")


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """A DataFrame with these columns, for Spark to analyse what is done with it."""
    from pyspark.sql import DataFrame

    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise ProgramError(_CONNECT)
    # createDataFrame([], schema) would set up a distributed collection, at ten times the cost.
    columns = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    return DataFrame(spark._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), columns), spark)


def identities(frame: DataFrame) -> dict[str, int]:
    """The ids by which Spark tells columns apart. What is passed through keeps its id, what is computed has another.

    A union has the ids of its first side, whatever is in the others: its columns have none here.
    """
    plan = _plan(frame)
    if _has_union(plan):
        return {}
    output = plan.output()
    columns = (output.apply(i) for i in range(output.length()))
    return {column.name(): column.exprId().id() for column in columns}


def _has_union(node: Any) -> bool:
    below = node.children()
    return node.nodeName() == "Union" or any(_has_union(below.apply(i)) for i in range(below.length()))


def over_several_rows(frame: DataFrame, source: DataFrame) -> str | None:
    """What in a plan goes over several rows of `source`, or adds some, and what that would do; None if nothing does.

    That a static DataFrame is joined is no harm, whatever it is made of.
    """
    stream = _plan(source).collectLeaves().head()
    found: list[str] = []
    others: list[str] = []

    def walk(node: Any) -> bool:
        """Whether the rows come by here."""
        below = node.children()
        if below.length() == 0:
            # In a join with itself one side has new ids, but is the same otherwise.
            return bool(node.sameResult(stream))
        within = [walk(below.apply(i)) for i in range(below.length())]
        if any(within):
            name = node.nodeName()
            if name in _OVER_SEVERAL:
                found.append(_OVER_SEVERAL[name])
            elif name == "Union" and not all(within):
                others.append("a union with other rows would add them again in each epoch. Write them to a topic, once")
            elif name == "Join":
                found.extend(_join(node.joinType().toString(), within))
        return any(within)

    walk(_plan(frame))
    if found:
        return (
            f"{found[-1]} would go over those rows that happen to be in an epoch. Group with "
            ".group_by(…).aggregate(…), which goes over all there ever were"
        )
    return others[-1] if others else None


def _join(kind: str, within: list[bool]) -> Iterator[str]:
    if all(within):
        yield "a join of the stream with itself"
    elif kind in ("FullOuter", "RightOuter" if within[0] else "LeftOuter"):
        yield "a join that keeps all rows of the other side"


def called(where: str, function: Callable[[DataFrame], DataFrame], frame: DataFrame) -> DataFrame:
    """What a function of the user's makes of a DataFrame.

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
    return made


@contextmanager
def explained(where: str) -> Iterator[None]:
    """What Spark refuses becomes a `ProgramError` that says where it is in the program, and what Spark says."""
    from pyspark.logger import PySparkLogger

    # PySpark logs the whole plan and a Java stack trace beside each error that it raises.
    logger = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    except ProgramError:
        raise
    except PySparkException as error:
        raise ProgramError(f"{where}: {sentence(error)}") from error
    finally:
        logger.disabled = before


def sentence(error: PySparkException) -> str:
    """What Spark says is wrong: without codes, and without the plan that follows."""
    text = error.getMessage() or str(error)
    lines = [_STATE.sub("", line) for line in text.strip().splitlines()]
    told = [line for line in lines if line][:2]
    if len(told) > 1 and told[1].lstrip().startswith(("'", "+-", "==", ":-")):
        told = told[:1]  # then comes the plan
    return _CODE.sub("", " ".join(told)).strip()


def _plan(frame: DataFrame) -> Any:
    java = getattr(frame, "_jdf", None)
    if java is None:
        raise ProgramError(_CONNECT)
    return java.queryExecution().analyzed()
