"""The test driver of streams applications."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, Final, Self

import pyarrow as pa

from kohort.spark.errors import ApplicationError
from kohort.spark.jobs.errors import BadRecordError
from kohort.spark.testing.input import Key, Rows, Time, millis
from kohort.spark.testing.output import OutputRows
from kohort.spark.testing.running import RunningApplication
from kohort.spark.testing.session import local_session, without_warnings_of_pandas
from kohort.spark.testing.store_view import StoreView

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark.app import StreamsApp

_START: Final = datetime(2000, 1, 1, tzinfo=UTC)


class TestDriver:
    """Runs an application in a test: without a broker and a group, in a local session of Spark.

    Plans, stores (RocksDB, in a temporary directory), late rows, closing windows and internal topics are those of
    `StreamsApp.run`. Each `pipe` is an epoch, and goes on until nothing is left to read. A context manager.

    Args:
        app: the application. Its bootstrap servers are never asked.
        spark: the session; by default the one that there is, or `local_session()`.
        partitions: of the topics that it reads and writes: of all of them, or by name (one where that says nothing).
            Topics that a stream's pattern matches are those that are named here.
        now: where the driver's clock begins, which only `advance` moves.

    Raises:
        ProgramError: the program can't run as it is written, or not with so many partitions.
    """

    __test__: ClassVar[bool] = False  # no class of tests, whatever pytest makes of its name

    def __init__(
        self,
        app: StreamsApp,
        spark: SparkSession | None = None,
        *,
        partitions: int | Mapping[str, int] = 1,
        now: Time = _START,
    ) -> None:
        self._app, self._spark, self._partitions = app, spark, partitions
        self._now = millis(now)
        self._stack = contextlib.ExitStack()
        self._running: RunningApplication | None = None
        self._failure: str | None = None

    # Life ------------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack, without_warnings_of_pandas():
            self._running = RunningApplication(
                self._app, self._spark or local_session(), self._partitions, self._clock, stack
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and removes its stores. May be called twice."""
        self._running = None
        self._stack.close()

    # Input -----------------------------------------------------------------------------------------------------------

    def pipe(
        self,
        topic: str,
        rows: Rows,
        *,
        key: Key | Sequence[Key] = None,
        at: Time | Sequence[Time] | None = None,
        partition: int | None = None,
        step: bool = True,
    ) -> None:
        """Writes rows to a topic that the application reads, and has it read them.

        Args:
            topic: its name.
            rows: dicts of columns; bytes or text are values as they are, such as ones that can't be read; None is a
                record without a value. Or an Arrow table, a DataFrame of Spark or of pandas.
            key: of all records, or one for each: text, bytes, or the columns that it holds. By default what the
                topic's `key=` says, none where it says nothing.
            at: the timestamp of all records, or one for each; by default the driver's clock.
            partition: that all go to; by default where their keys lead.
            step: whether the application reads them at once; else with the next `step`.

        Raises:
            ValueError: rows that can't be the topic's: says which row, and what is wrong.
            ApplicationError: the application stops: says at which record of which topic, or why the job failed.
        """
        running = self._run()
        given = running.input(topic)
        records = given.records(rows, key, at, self._now)
        running.write(topic, records, partition)
        if step:
            self.step()

    def delete(self, topic: str, *keys: Key, at: Time | None = None, step: bool = True) -> None:
        """Writes records without a value, which delete what a table has of these keys: text, or the key's columns.

        Raises:
            ValueError, ApplicationError: as of `pipe`.
        """
        self.pipe(topic, [None] * len(keys), key=keys, at=at, step=step)

    def step(self) -> None:
        """Has the application read all there is, and what comes of it, until nothing is left.

        Raises:
            ApplicationError: as of `pipe`.
        """
        running = self._run()
        if self._failure is not None:
            raise ApplicationError(f"the application has stopped before: {self._failure}")
        try:
            running.settle()
        except ApplicationError as error:
            self._failure = str(error)
            if isinstance(error.__cause__, BadRecordError):
                error.add_note(running.row_of(error.__cause__))
            raise

    def advance(self, by: timedelta | float) -> None:
        """Moves the driver's clock on, by a span or so many seconds, and steps.

        The clock gives records their timestamps where `at` says none, and timers of functions go by it that were set
        by processing time: all that are due then, at once. Windows close by stream time, which only records move.
        """
        span = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if span < timedelta():
            raise ValueError(f"time goes on, not back by {-span}")
        self._now += span // timedelta(milliseconds=1)
        self.step()

    @property
    def now(self) -> datetime:
        """The driver's clock."""
        return datetime.fromtimestamp(self._now / 1000, UTC)

    # Output ----------------------------------------------------------------------------------------------------------

    def output(self, topic: str) -> OutputRows:
        """The rows that were written to a topic since this was asked last: a list of dicts.

        Raises:
            ValueError: the application writes no such topic.
        """
        return self._run().output(topic)

    def records(self, topic: str) -> pa.Table:
        """All records that a topic has, internal ones too: offset, timestamp, key, value, headers, partition.

        Raises:
            ValueError: there is no such topic.
        """
        return self._run().records(topic)

    def store(self, name: str) -> StoreView:
        """A store as it is now: an aggregate's or a table's rows by key, of all partitions.

        Raises:
            ValueError: the application has no such store.
        """
        return self._run().store(name)

    @property
    def late(self) -> int:
        """Rows that came after their window was closed, until now."""
        return self._run().instance.late

    @property
    def dropped(self) -> dict[str, int]:
        """Records that were left out, until now, by reason: {"unreadable": 1, "no key": 2}."""
        return dict(self._run().instance.dropped)

    def _clock(self) -> int:
        return self._now

    def _run(self) -> RunningApplication:
        if self._running is None:
            raise RuntimeError("the driver doesn't run: enter it with `with` first")
        return self._running
