"""The adapter for Spark's internals: all that Kohort uses of Spark beyond PySpark's public API is in this module.

Plans and their nodes, py4j handles, and how Spark prints expressions and errors may change with any version of Spark.
tests/pipeline/test_spark_internals.py has a case for each thing that is relied on here, so a new version fails there.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kohort.spark.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_CONNECT: Final = (
    "this is a session of Spark Connect; a streams application needs a Spark driver in its own process: "
    'SparkSession.builder.master("local[*]") or a cluster\'s master, without .remote(…)'
)
_CLOCK: Final = re.compile(r"\b(current_timestamp|current_date|current_time|now|localtimestamp|localtime)\(")
_ALL_FIELDS: Final = 100_000
# What differs from one time to the next that the same expression is printed: the numbers of functions' variables (in
# x_1 -> x_1 + 1), where in memory an array is, and, with Python functions, where in which file something was written.
_BOUND: Final = re.compile(r"(?:(\w+|\([\w, ]+\)) ->|UnresolvedNamedLambdaVariable\((?:List\()?(\w+))")
_VARIABLE: Final = re.compile(r"[xyz]_\d+")
_ORIGIN: Final = re.compile(r",? ?Origin\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_ADDRESS: Final = re.compile(r"(\[L?[\w.]+;?)@[0-9a-f]+")
_ERROR_CODE: Final = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w+;?")
_PLAN_STARTS: Final = ("'", "+-", "==", ":-")
_UNIX_SOCKETS: Final = "spark.python.unix.domain.socket.enabled"
_SOCKET_DIRECTORY: Final = "spark.python.unix.domain.socket.dir"
_DAEMON_MODULE: Final = "spark.python.daemon.module"
_ARCHIVE: Final = "/pyspark/python/lib/pyspark.zip"
_SOCKET_NAME: Final = ".00000000-0000-0000-0000-000000000000.sock"
_LONGEST_ADDRESS: Final = 103  # of a Unix socket, in bytes, on macOS; on Linux 107
_ASK_FOR_PANDAS: Final = r"pyspark\.(sql\.pandas\.functions|testing\.utils)$"
_CLOSED: Final = (BrokenPipeError, ConnectionResetError)
WORKER_MODULE: Final = "pyspark.worker"
"""What Spark's Python workers run."""
_OUTER_SIDES: Final = {"LeftOuter": {0}, "RightOuter": {1}, "FullOuter": {0, 1}}


class NodeName(StrEnum):
    """The names of plan nodes that decisions go by."""

    AGGREGATE = "Aggregate"
    CACHED = "InMemoryRelation"
    CO_GROUPED_IN_ARROW = "FlatMapCoGroupsInArrow"
    CO_GROUPED_IN_PANDAS = "FlatMapCoGroupsInPandas"
    COLLECT_METRICS = "CollectMetrics"
    DEDUPLICATE = "Deduplicate"
    DISTINCT = "Distinct"
    EXCEPT = "Except"
    EXCEPT_ALL = "Except All"
    FILTER = "Filter"
    GENERATE = "Generate"
    GROUPED_IN_ARROW = "FlatMapGroupsInArrow"
    GROUPED_IN_PANDAS = "FlatMapGroupsInPandas"
    HINT = "ResolvedHint"
    INTERSECT = "Intersect"
    INTERSECT_ALL = "Intersect All"
    JOIN = "Join"
    LATERAL_JOIN = "LateralJoin"
    LIMIT = "GlobalLimit"
    MAP_IN_ARROW = "MapInArrow"
    OFFSET = "Offset"
    PROJECT = "Project"
    RANGE = "Range"
    RDD = "LogicalRDD"
    REPARTITION = "Repartition"
    REPARTITION_BY = "RepartitionByExpression"
    SAMPLE = "Sample"
    SORT = "Sort"
    SUBQUERY_ALIAS = "SubqueryAlias"
    UNION = "Union"
    VIEW = "View"
    WINDOW = "Window"
    WITH_CTE = "WithCTE"


class Attribute(NamedTuple):
    """A column in a plan. What a node passes on keeps its id; what it computes has another."""

    name: str
    id: int
    handle: Any


class PlanNode:
    """A node of a plan, with the plan under it.

    Args:
        handle: of Catalyst's.
        session: whose plan it is.
    """

    def __init__(self, handle: Any, session: SparkSession) -> None:
        self._handle = handle
        self._session = session

    @cached_property
    def name(self) -> str:
        """What kind of node it is: a `NodeName`, if decisions go by it."""
        return str(self._handle.nodeName())

    @cached_property
    def children(self) -> tuple[PlanNode, ...]:
        return tuple(PlanNode(each, self._session) for each in _each(self._handle.children()))

    @cached_property
    def output(self) -> tuple[Attribute, ...]:
        """The columns of its rows, in order."""
        return tuple(map(_attribute, _each(self._handle.output())))

    @cached_property
    def references(self) -> frozenset[int]:
        """The ids of the columns that its own expressions use."""
        return frozenset(_attribute(each).id for each in _each(self._handle.references().toSeq()))

    @property
    def renamed(self) -> Mapping[int, int]:
        """Of `NodeName.PROJECT`: the ids of columns that it passes on under other names, by those that they get."""
        if self.name != NodeName.PROJECT:
            return {}
        aliases = [each for each in _each(self._handle.projectList()) if _class(each) == "Alias"]
        named = [(each, each.child()) for each in aliases if _class(each.child()) == "AttributeReference"]
        return {int(alias.exprId().id()): _attribute(column).id for alias, column in named}

    @property
    def first_leaf(self) -> PlanNode:
        return PlanNode(self._handle.collectLeaves().head(), self._session)

    @property
    def cached_plan(self) -> PlanNode:
        """Of `NodeName.CACHED`: the plan whose rows are cached."""
        return PlanNode(self._handle.cacheBuilder().cachedPlan(), self._session)

    @property
    def outer_sides(self) -> frozenset[int]:
        """Of `NodeName.JOIN`: the children (0, 1) whose rows all stay, with a match or without."""
        return frozenset(_OUTER_SIDES.get(self._handle.joinType().toString(), ()))

    @property
    def has_random_numbers(self) -> bool:
        """Whether the plan has seeds, which are drawn once for it."""
        return self._contains("EXPRESSION_WITH_RANDOM_SEED")

    @property
    def has_subqueries(self) -> bool:
        """Whether expressions of the plan have plans of their own."""
        return self._contains("PLAN_EXPRESSION")

    @property
    def reads_clock(self) -> bool:
        """Whether the plan, which isn't optimized yet, asks for the current time or date."""
        return bool(_CLOCK.search(self._text))

    @property
    def is_exchange(self) -> bool:
        """Whether it's an executed plan's node that moves rows between tasks, or may choose to."""
        return "Exchange" in self.name or self.name == "AdaptiveSparkPlan"

    def lays_by(self, column: str) -> bool:
        """Of an exchange: whether rows with the same value in a column go to the same task."""
        laid = str(self._handle.outputPartitioning())
        return f"{column}#" in laid and laid.count("#") == 1

    def mentions(self, column: str) -> bool:
        """Whether a column of this name is anywhere in the plan."""
        return f"{column}#" in self._text

    def same_result(self, other: PlanNode) -> bool:
        """Whether both compute the same, though columns may have other ids."""
        return bool(self._handle.sameResult(other._handle))

    def with_children(self, children: Sequence[PlanNode]) -> PlanNode:
        """The node over other plans."""
        handles = self._sequence([each._handle for each in children]).toIndexedSeq()
        return PlanNode(self._handle.withNewChildren(handles), self._session)

    def with_columns(self, columns: Sequence[Attribute]) -> PlanNode:
        """Of `NodeName.PROJECT`: the same, which passes on these columns, too."""
        own = _each(self._handle.projectList())
        return self._project([*own, *(each.handle for each in columns)], self._handle.child())

    def projected(self, columns: Sequence[Attribute]) -> PlanNode:
        """A `NodeName.PROJECT` over this plan that passes on these columns alone."""
        return self._project([each.handle for each in columns], self._handle)

    def _project(self, columns: Sequence[Any], child: Any) -> PlanNode:
        logical = _jvm(self._session).org.apache.spark.sql.catalyst.plans.logical
        return PlanNode(logical.Project(self._sequence(columns), child), self._session)

    def _contains(self, pattern: str) -> bool:
        patterns = getattr(_jvm(self._session), "org.apache.spark.sql.catalyst.trees.TreePattern")
        return bool(self._handle.containsPattern(getattr(patterns, pattern)()))

    @property
    def _text(self) -> str:
        return str(self._handle.treeString(True, False, _ALL_FIELDS, False, False))

    def _sequence(self, values: Sequence[Any]) -> Any:
        jvm = _jvm(self._session)
        several = jvm.java.util.ArrayList()
        for each in values:
            several.add(each)
        return jvm.scala.jdk.javaapi.CollectionConverters.asScala(several).toList()


# Plans of DataFrames -------------------------------------------------------------------------------------------------


def analyzed(frame: DataFrame) -> PlanNode:
    """The plan as it was written, with columns resolved.

    Raises:
        ProgramError: the DataFrame is one of Spark Connect, which has no plans here.
    """
    return PlanNode(_execution(frame).analyzed(), frame.sparkSession)


def optimized(frame: DataFrame) -> PlanNode:
    """The plan after the optimizer, which leaves out columns that nothing uses."""
    return PlanNode(_execution(frame).optimizedPlan(), frame.sparkSession)


def executed(frame: DataFrame) -> PlanNode:
    """The plan as it runs."""
    return PlanNode(_execution(frame).executedPlan(), frame.sparkSession)


def frame_of(plan: PlanNode) -> DataFrame:
    """A DataFrame of a logical plan."""
    from pyspark.sql import DataFrame

    session = plan._session
    dataset = _jvm(session).org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan._handle), session)


def empty_frame(spark: SparkSession, schema: StructType) -> DataFrame:
    """A DataFrame with these columns, for Spark to analyse what is done with it.

    `createDataFrame([], schema)` would set up a distributed collection, at ten times the cost.

    Raises:
        ProgramError: it's a session of Spark Connect.
    """
    from pyspark.sql import DataFrame

    jvm = _jvm(spark)
    columns = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    return DataFrame(spark._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), columns), spark)


# Types ---------------------------------------------------------------------------------------------------------------


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark exchanges columns with Python functions, times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def spark_type(kind: pa.DataType) -> DataType:
    """The Spark type that an Arrow type is read as."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind)


# What Spark prints ---------------------------------------------------------------------------------------------------


def column_text(column: object) -> str:
    """A Column as Spark prints its expression: `timestamp_millis(at) AS time`."""
    return str(column).removeprefix("Column<'").removesuffix("'>")


def expression_text(column: Column) -> str:
    """The same, without what differs from one time to the next that an expression is made."""
    text = _ADDRESS.sub(r"\1", _ORIGIN.sub("", column_text(column)))
    bound = [name for found in _BOUND.finditer(text) for name in _VARIABLE.findall(found[0])]
    numbers = {name: f"{name[0]}_{number}" for number, name in enumerate(dict.fromkeys(bound))}
    return re.sub(r"\w+", lambda found: numbers.get(found[0], found[0]), text)


def error_sentence(error: PySparkException) -> str:
    """What Spark says is wrong, without codes, and without the plan that follows."""
    text = error.getMessage() or str(error)
    lines = [line for each in text.strip().splitlines() if (line := _SQLSTATE.sub("", each))]
    wanted = 1 if len(lines) > 1 and lines[1].lstrip().startswith(_PLAN_STARTS) else 2
    return _ERROR_CODE.sub("", " ".join(lines[:wanted])).strip()


@contextmanager
def unlogged_errors() -> Iterator[None]:
    """Meanwhile PySpark doesn't log the plan and the Java stack trace of each error that it raises."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def leave_out_warning_of_pandas() -> None:
    """From now on, PySpark doesn't warn that pandas is newer than it where nothing is done with pandas.

    `mapInArrow` does so, since it goes the way of pandas UDFs, and `lit`. Of toPandas and the like it still does.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning, _ASK_FOR_PANDAS)


def stop_progress_bar(spark: SparkSession) -> None:
    """Stop Spark's own bar of stages, which would tear a live line. It can't be started again."""
    bar = spark.sparkContext._jsc.sc().progressBar()
    if bar.isDefined():
        bar.get().finishAll()
        bar.get().stop()


@contextmanager
def unix_sockets_to_workers(spark: SparkSession) -> Iterator[None]:
    """Meanwhile Spark talks to Python workers by Unix sockets, where all is in this process.

    Over TCP a small task waits 40 ms for an acknowledgement that is delayed, since Spark leaves Nagle's algorithm on.
    The first worker of a daemon decides for all of it, also afterwards. What the user has set stays. Executors of a
    cluster may ask for these settings at any time, so there they aren't touched.
    """
    directory = _socket_directory() if is_local(spark) else None
    wanted = {} if directory is None else {_UNIX_SOCKETS: "true", _SOCKET_DIRECTORY: directory}
    with _settings(spark, wanted):
        yield


@contextmanager
def workers_forked_from(spark: SparkSession, module: str) -> Iterator[None]:
    """Meanwhile Spark starts Python workers from a daemon of ours, where all is in this process.

    A daemon that the user has set stays. Executors of a cluster ask for the setting at any time, so there it isn't
    touched; nor elsewhere than on Linux, since some libraries of macOS don't survive a fork; nor where workers run
    another Python than this, or this project isn't in a directory: the daemon might not find what it loads.

    Args:
        module: what the daemon runs; it calls `serve_workers`.
    """
    python = shutil.which(spark.sparkContext.pythonExec)
    same = python is not None and Path(python).parent == Path(sys.executable).parent and Path(__file__).is_file()
    with _settings(spark, {_DAEMON_MODULE: module} if same and sys.platform == "linux" and is_local(spark) else {}):
        yield


def is_local(spark: SparkSession) -> bool:
    """Whether there are no executors but this process."""
    local: bool = spark.sparkContext._jsc.sc().isLocal()
    return local


_setting = threading.Lock()
_users: Counter[tuple[str, ...]] = Counter()
"""How many have settings of a Spark application set, by its id and their names."""


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile a context has settings, unless the user has set any of them. Several may want them at once."""
    if not wanted:
        yield
        return
    context = spark.sparkContext._jsc.sc()
    conf = context.conf()
    users = (context.applicationId(), *wanted)
    with _setting:
        ours = _users[users] > 0 or not any(map(conf.contains, wanted))
        if ours:
            _users[users] += 1
            for name, value in wanted.items():
                conf.set(name, value)
    try:
        yield
    finally:
        with _setting:
            _users[users] -= ours
            if ours and not _users[users]:
                del _users[users]
                for name in wanted:
                    conf.remove(name)


def leave_out_zipped_pyspark() -> None:
    """In a daemon, before PySpark is imported: it comes from where it is installed, if Spark is a part of it.

    Spark has its workers import it from an archive, which has no compiled modules: a second of processor time.
    """
    for entry in [each for each in sys.path if each.endswith(_ARCHIVE)]:
        if entry.removesuffix(_ARCHIVE) in sys.path:
            sys.path.remove(entry)


def serve_workers() -> None:
    """In a daemon: forks the workers that Spark asks for, until it ends.

    A worker whose connection Spark has closed, as it does with those that wait for work when it ends or has too many,
    and with those whose job is cancelled, ends without a word: PySpark would print a traceback of that.
    """
    import traceback
    from types import SimpleNamespace

    from pyspark import daemon

    quiet = SimpleNamespace(**{**vars(traceback), "print_exc": _unless_closed(traceback.print_exc)})
    vars(daemon).update(print=_unless_closed(print), traceback=quiet)
    hook = sys.unraisablehook

    def tell(error: sys.UnraisableHookArgs) -> None:  # a buffer that can't be flushed, from Python 3.13 on
        if not isinstance(error.exc_value, _CLOSED):
            hook(error)

    sys.unraisablehook = tell
    daemon.manager()


def _unless_closed(say: Callable[..., None]) -> Callable[..., None]:
    def said(*arguments: Any, **settings: Any) -> None:
        if not isinstance(sys.exception(), _CLOSED):
            say(*arguments, **settings)

    return said


@cache
def _socket_directory() -> str | None:
    """A directory that this user alone may open, since Spark asks those who connect to a Unix socket for no secret.

    It is removed when the process ends. None: its path is too long for sockets.
    """
    directory = tempfile.mkdtemp(prefix="kohort-spark-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory if len(os.fsencode(f"{directory}/{_SOCKET_NAME}")) <= _LONGEST_ADDRESS else None


# ---------------------------------------------------------------------------------------------------------------------


def _jvm(spark: SparkSession) -> Any:
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise ProgramError(_CONNECT)
    return jvm


def _execution(frame: DataFrame) -> Any:
    dataset = getattr(frame, "_jdf", None)
    if dataset is None:
        raise ProgramError(_CONNECT)
    return dataset.queryExecution()


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def _class(handle: Any) -> str:
    return str(handle.getClass().getSimpleName())


def _attribute(handle: Any) -> Attribute:
    return Attribute(handle.name(), int(handle.exprId().id()), handle)
