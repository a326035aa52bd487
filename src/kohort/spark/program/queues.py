"""What a user writes of work queues: where the records come from, what is made of them, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from kohort.spark.errors import ProgramError
from kohort.spark.program.missing_methods import of_a_dataframe
from kohort.spark.program.registries import used_registry
from kohort.spark.program.settings import check_name
from kohort.spark.program.shortcuts import Shortcuts
from kohort.spark.program.sources import SourceDef
from kohort.spark.program.streams import OutputDef, output_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kohort.schema_registry.registry import SchemaRegistry

__all__ = ["DELIVERY_COUNT", "ProcessedQueue", "Queue", "QueueDef", "QueueSettings", "WorkDef"]

DELIVERY_COUNT: Final = "_delivery_count"
"""INT: how often a record was handed out, this time included."""

_AT_LEAST: Final = {"max_records": 1, "max_deliveries": 1, "lock_ms": 1, "processing_timeout_ms": 1_000}


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """How a queue's records are acquired. Times in ms; see `StreamsApp.queue`.

    Raises:
        ProgramError: a value that can't be.
    """

    dead_letters: str | None = None
    max_deliveries: int = 4
    max_records: int = 500
    acquire_mode: str = "record_limit"
    lock_ms: int | None = None
    processing_timeout_ms: int = 300_000
    offset_reset: str | None = "earliest"

    def check(self, where: str, topic: str) -> None:
        """Refuses what can't be; `where` begins the sentence."""
        if self.dead_letters is not None:
            check_name(f"{where}: dead_letters", self.dead_letters)
            if self.dead_letters == topic:
                raise ProgramError(f"{where}: its dead letters can't go to the topic itself: they would come back")
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if name == "lock_ms" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ProgramError(f"{where}: {name}={value!r} must be a whole number, {least} or more")
        if self.acquire_mode not in ("record_limit", "batch_optimized"):
            raise ProgramError(f'{where}: acquire_mode={self.acquire_mode!r}: "record_limit" or "batch_optimized"')
        if self.offset_reset not in ("earliest", "latest", None):
            raise ProgramError(f'{where}: offset_reset={self.offset_reset!r}: "earliest", "latest" or None')


@dataclass(eq=False)
class WorkDef:
    """What becomes of a queue's records.

    Attributes:
        steps: the transforms, in order.
        outcome: the column that says it; None: what the job has done is accepted.
        reason: the column that says why.
        missing: what becomes of records without a row in the result: "accept" or "release".
    """

    steps: tuple[Callable[[DataFrame], DataFrame], ...]
    outcome: str | None
    reason: str | None
    missing: str
    outputs: list[OutputDef] = field(default_factory=list)
    functions: list[Callable[[DataFrame, str], object]] = field(default_factory=list)


@dataclass(eq=False)
class QueueDef:
    """A queue, as the user defines it. `registry`: the application's; `work`: None until `Queue.process` says it."""

    source: SourceDef
    settings: QueueSettings
    registry: SchemaRegistry | None = None
    work: WorkDef | None = None


class Queue(Shortcuts):
    """A topic's records as work, of which any number of workers gets some at a time. Made by `StreamsApp.queue`.

    Each method gives another queue and leaves this one as it is.
    """

    instead = "a queue has transform, where, select and with_columns, and ends with process"

    def __init__(self, definition: QueueDef, steps: tuple[Callable[[DataFrame], DataFrame], ...] = ()) -> None:
        self._definition = definition
        self._steps = steps

    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Queue:
        """The queue whose rows a function makes of this one's: select, where, withColumn, explode, UDFs, …

        The function must treat each row by itself, as of `Stream.transform`. Its rows have `_partition` and `_offset`,
        by which records are acknowledged: what goes through mapInPandas or mapInArrow has to keep both.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"transform takes a function that makes a DataFrame of a DataFrame, not {function!r}")
        return Queue(self._definition, (*self._steps, function))

    def process(
        self,
        function: Callable[[DataFrame], DataFrame] | None = None,
        *,
        outcome: str | None = None,
        reason: str | None = None,
        missing: Literal["accept", "release"] = "accept",
    ) -> ProcessedQueue:
        """Does the work, and says what becomes of each record.

            jobs.process(resized, outcome="outcome", reason="error").to("thumbnails", key="id")

        Args:
            function: a last transform, as of `transform`.
            outcome: the column that says it of each row: "accept" (it's done), "release" (another delivery, to any
                worker) or "reject" (unusable: it goes to the dead letters). Where it says something else, or nothing,
                the record is released. Of several rows of a record, a rejection counts most, then a release. Without,
                all is accepted that the job has done.
            reason: the column that says why, for dead letters and the log.
            missing: what becomes of records of which the result has no row: "accept" or "release".

        Raises:
            ProgramError: arguments that can't be, or the queue is processed already.
        """
        definition = self._definition
        where = f"queue {definition.source.topic!r}: process"
        queue = self if function is None else self.transform(function)
        for name, column in (("outcome", outcome), ("reason", reason)):
            if not isinstance(column, str | None):
                raise ProgramError(f"{where}({name}={column!r}): takes a column's name")
        if missing not in ("accept", "release"):
            raise ProgramError(f'{where}(missing={missing!r}): "accept" or "release"')
        if definition.work is not None:
            raise ProgramError(f"{where}: it is processed already, and a record is acknowledged once")
        definition.work = WorkDef(queue._steps, outcome, reason, missing)
        return ProcessedQueue(definition.source.topic, definition.work, definition.registry)

    def branch(self, **_: Any) -> Any:
        """A queue has no branches: a record is acknowledged once. Use a column, and `process(outcome=…)`."""
        raise ProgramError(
            "a queue has no branches, since a record is acknowledged once: make a column with CASE WHEN …"
        )

    def _advice(self, name: str) -> str:
        if name in ("to", "for_each_batch"):
            return f"say first what becomes of the records: .process(outcome=…).{name}(…)"
        if of_a_dataframe(name):
            return f"DataFrames have it, so say .transform(lambda df: df.{name}(…))"
        return super()._advice(name)

    def __repr__(self) -> str:
        return f"Queue({self._definition.source.topic}{', …' if self._steps else ''})"


class ProcessedQueue:
    """A queue of which it is said what becomes of its records. Made by `Queue.process`."""

    def __init__(self, topic: str, work: WorkDef, registry: SchemaRegistry | None) -> None:
        self._topic = topic
        self._work = work
        self._registry = registry

    def to(
        self,
        topic: str,
        *,
        key: str | Sequence[str] | None = None,
        format: str = "json",  # noqa: A002
        schema: str | None = None,
        schema_registry: SchemaRegistry | Literal[False] | None = None,
        subject: str | None = None,
        auto_register: bool = True,
        delimiter: str = ",",
    ) -> ProcessedQueue:
        """Writes the result's rows of accepted records to a topic, before these are acknowledged: at least once.

        A record that is handed out again (its worker died, or its lock ended before the broker knew) is written again.
        One of which a row can't be written in the format, or is too large, is rejected.

        Args:
            topic: it must exist.
            key, format, schema, schema_registry, subject, auto_register, delimiter: as of `Stream.to`.

        Raises:
            ProgramError: arguments that can't be.
        """
        output = output_of(topic, key, format, schema)
        where = f"to({topic!r})"
        if schema_registry is not False:
            output.registry = used_registry(where, format, schema_registry, self._registry)
        if output.registry is None and (subject is not None or not auto_register):
            raise ProgramError(f'{where}: a subject is of a registry: say schema_registry=…, and format="avro"')
        output.subject, output.auto_register, output.delimiter = subject, auto_register, delimiter
        self._work.outputs.append(output)
        return self

    def for_each_batch(self, function: Callable[[DataFrame, str], object]) -> ProcessedQueue:
        """Gives the result's rows of accepted records to a function, in the driver, before these are acknowledged.

            def write(rows: DataFrame, batch_id: str) -> None: ...

        At least once: what is handed out again comes again, with other rows and another id. The rows have `_partition`
        and `_offset`, by which a sink can tell what it has. If the function fails, the records are released; at their
        last delivery they are rejected.

        Raises:
            ProgramError: no function is given.
        """
        if not callable(function):
            raise ProgramError(f"for_each_batch takes a function of a DataFrame and an id, not {function!r}")
        self._work.functions.append(function)
        return self

    def __repr__(self) -> str:
        return f"ProcessedQueue({self._topic})"
