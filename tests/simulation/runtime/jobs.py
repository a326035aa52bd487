"""A model of a Spark job: reads an epoch's records, looks up what was counted, and says what is to be written."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohort.client.types import TopicPartition
from kohort.spark.epoch import EpochStatistics
from kohort.spark.runtime.effects import Epoch
from kohort.spark.runtime.window_closing import later
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import COUNTS, REPARTITION, USERS, Application
from tests.simulation.runtime.logs import Logs, Record
from tests.simulation.runtime.oracle import partition_of
from tests.simulation.runtime.programs import Read
from tests.simulation.runtime.stores import Disk, Store


@dataclass
class Made:
    """What an epoch made.

    Attributes:
        records: to be sent, by partition.
        rows: for the stores, by changelog.
        stores: whose rows these are: task and store.
        statistics: of what was read.
    """

    records: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    rows: dict[TopicPartition, dict[str, int | None]] = field(default_factory=dict)
    stores: dict[TopicPartition, tuple[TaskId, str]] = field(default_factory=dict)
    statistics: EpochStatistics = field(default_factory=EpochStatistics)


def run_job(application: Application, logs: Logs, disk: Disk, epoch: Epoch) -> Made:
    """Run an epoch's job.

    Raises:
        InvariantError: it reads what isn't stable, or looks up in a store that isn't open.
    """
    made = Made()
    for span, task in zip(epoch.plan.ranges, epoch.plan.tasks, strict=True):
        partition = TopicPartition(span.topic, span.partition)
        if span.end > logs[partition].stable:
            raise InvariantError(f"{partition} is read to {span.end}, and is stable to {logs[partition].stable}")
        records = logs[partition].counting(span.start, span.end)
        made.statistics.records += len(records)
        made.statistics.bytes += 100 * len(records)
        if records or application.plan.subtopologies[task.subtopology].clocks:
            _take(made, application, disk, epoch, task, partition, records)
    return made


def _take(
    made: Made,
    application: Application,
    disk: Disk,
    epoch: Epoch,
    task: TaskId,
    partition: TopicPartition,
    records: list[tuple[int, Record]],
) -> None:
    table = epoch.table
    _copy(made, task, [Record(record.key, record.value, record.at, (partition, offset)) for offset, record in records])
    if table is None and records:
        made.statistics.max_times[task.partition] = max(record.at for _, record in records)
    if table is None and task.subtopology not in application.counting:
        mergers = {merger.partition: merger for tasks in epoch.plan.mergers.values() for merger in tasks}
        for offset, record in records:
            number = partition_of(record.key, application.partitions)
            sent = Record(record.key, record.value, record.at, (partition, offset))
            if number in mergers:
                _merge(made, application, disk, mergers[number], sent)
            else:
                made.records.setdefault(TopicPartition(REPARTITION, number), []).append(sent)
        return
    if application.program is not None:
        _run_program(made, application, disk, epoch, task, records)
        return
    _store(made, application, disk, task, table, [record for _, record in records])


def _run_program(
    made: Made, application: Application, disk: Disk, epoch: Epoch, task: TaskId, records: list[tuple[int, Record]]
) -> None:
    """What a task with several stores makes of records, and of timers that are due."""
    assert application.program is not None
    time = later(epoch.stream_times[task.partition], made.statistics.max_times.get(task.partition))
    stores = {name: store.rows for name, store in _opened(disk, task).items()}
    change = application.program(stores, Read(records, time, epoch.epoch_input.now))
    for name, rows in change.rows.items():
        if rows:
            changelog = application.changelog(task, name)
            made.rows[changelog], made.stores[changelog] = rows, (task, name)
            made.records[changelog] = [Record(key, value) for key, value in rows.items()]
    if change.out:
        made.records[TopicPartition("out", task.partition)] = change.out


def _opened(disk: Disk, task: TaskId) -> dict[str, Store]:
    if task not in disk.open:
        raise InvariantError(f"stores in turn: a job looks up in the store of {task}, which is closed")
    return disk.open[task]


def _merge(made: Made, application: Application, disk: Disk, task: TaskId, record: Record) -> None:
    """A record is counted by a task that runs beside."""
    _copy(made, task, [record])
    times = made.statistics.merged_times.setdefault(0, {})
    times[task.partition] = max(record.at, times.get(task.partition) or record.at)
    _store(made, application, disk, task, None, [record])


def _copy(made: Made, task: TaskId, records: list[Record]) -> None:
    if not records:
        return
    made.records.setdefault(TopicPartition(f"copies-{task.subtopology}", task.partition), []).extend(records)


def _store(
    made: Made, application: Application, disk: Disk, task: TaskId, table: str | None, records: list[Record]
) -> None:
    name = COUNTS if table is None else USERS
    before = _opened(disk, task)[name].rows
    changelog = application.changelog(task, name)
    rows = made.rows.setdefault(changelog, {})
    for record in records:
        old = rows.get(record.key, before.get(record.key, 0))
        assert old is not None and record.value is not None
        rows[record.key] = old + record.value if table is None else record.value
    made.stores[changelog] = (task, name)
    made.records[changelog] = [Record(key, value) for key, value in rows.items()]
