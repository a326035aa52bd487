"""What must be in the logs: each input offset counts once, in order, with the right totals. Asked at each commit.

What is made for a task that counts it beside isn't sent to it; then that task's offset is committed as it was. On
whichever way records come to it, those of a partition of the source must come in order.

A program with timers commits without having read anything, too; then its offsets are as they were.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kohort.client.types import TopicPartition
from kohort.spark.program.committed_metadata import committed_by
from kohort.streams.tasks import TaskId
from tests.simulation.books import InvariantError
from tests.simulation.runtime.application import COUNTS, REPARTITION, USERS, Application
from tests.simulation.runtime.logs import Logs, Record
from tests.simulation.runtime.programs import NEAR_MS, Read, pair_of
from tests.simulation.runtime.transactions import Transaction

Rows = dict[str, int]


class Oracle:
    """A sequential run of the application, as far as offsets are committed.

    Attributes:
        offsets: what is committed, by input partition.
        tables: what the stores must have, by changelog.
        merged: how many records were counted without having been in the repartition topic.
    """

    def __init__(self, application: Application, logs: Logs, now: Callable[[], int]) -> None:
        self._application, self._logs, self._now = application, logs, now
        self._readers = {
            topic: (name, "" if topic == part.inputs.stream else table)
            for name, part in application.plan.subtopologies.items()
            for table, topic in [("", part.inputs.stream), *part.inputs.tables.items()]
            if topic is not None
        }
        self.offsets: dict[TopicPartition, int] = {}
        self.tables: dict[TopicPartition, Rows] = {}
        self.commits = 0
        self.merged = 0
        self._stream_times: dict[TaskId, int] = {}
        self._counted: dict[tuple[TaskId, TopicPartition], int] = {}

    def committed(self, name: str, transaction: Transaction) -> None:
        """A transaction counts: checks all that it wrote. Called when that is decided.

        Raises:
            InvariantError: an offset is counted twice or not at all, or something else is written than follows from it.
        """
        self.commits += 1
        expected: dict[TopicPartition, list[Record]] = {}
        merging = {
            at.partition: 0
            for at, (offset, _) in transaction.offsets.items()
            if at.topic == REPARTITION and offset == self.offsets.get(at, 0)
        }
        for partition, (offset, _) in transaction.offsets.items():
            before = self.offsets.get(partition, 0)
            if partition.topic == REPARTITION and partition.partition in merging:
                continue
            if offset < before or (offset == before and not self._has_clock(partition)):
                self._fail(name, f"{partition} is committed up to {offset}, after {before}")
            subtopology, table = self._readers[partition.topic]
            task = TaskId(subtopology, partition.partition)
            records = self._logs[partition].counting(before, offset)
            if self._application.program is not None and subtopology in self._application.counting:
                self._run_program(task, partition, records, transaction, expected)
            else:
                self._follow(task, table, partition, records, expected, merging)
            self.offsets[partition] = offset
        if not all(merging.values()):
            self._fail(name, f"{transaction.offsets}: nothing was merged, of {merging}")
        self.merged += sum(merging.values())
        for partition, (_, text) in transaction.offsets.items():
            subtopology, _ = self._readers[partition.topic]
            task = TaskId(subtopology, partition.partition)
            said = committed_by(text)
            if said is None or said.stream_time != self._stream_times.get(task):
                self._fail(name, f"{partition}: stream time is {self._stream_times.get(task)}, and {said} is committed")
        for at in expected.keys() | transaction.partitions.keys():
            wanted, found = sorted(expected.get(at, [])), sorted(transaction.partitions.get(at, []))
            if wanted != found:
                lacks, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
                self._fail(name, f"offsets {transaction.offsets}: {at} lacks {list(lacks)}, has {list(more)} too many")

    def _has_clock(self, partition: TopicPartition) -> bool:
        """Whether a task is called when a timer is due, with nothing to read."""
        subtopology, _ = self._readers[partition.topic]
        return bool(self._application.plan.subtopologies[subtopology].clocks)

    def _run_program(
        self,
        task: TaskId,
        partition: TopicPartition,
        records: list[tuple[int, Record]],
        transaction: Transaction,
        expected: dict[TopicPartition, list[Record]],
    ) -> None:
        """What a task with several stores has to write. Which time of the clock it was follows from what is put out."""
        if records:
            copies = [Record(record.key, record.value, record.at, (partition, offset)) for offset, record in records]
            expected[TopicPartition(f"copies-{task.subtopology}", task.partition)] = copies
            time = max(record.at for _, record in records)
            self._stream_times[task] = max(time, self._stream_times.get(task, time))
            self._in_order(task, [record for _, record in records])
        out = TopicPartition("out", task.partition)
        now = max((record.value or 0 for record in transaction.partitions.get(out, ())), default=0)
        if self._has_clock(partition) and now > self._now():
            self._fail(task, f"a timer of {now} has gone off at {self._now()}")
        program = self._application.program
        assert program is not None
        changelogs = self._application.plan.changelogs(task)
        stores = {name: self.tables.setdefault(changelog, {}) for name, changelog in changelogs.items()}
        change = program(stores, Read(records, self._stream_times.get(task), now))
        for name, rows in change.rows.items():
            if rows:
                expected[changelogs[name]] = [Record(key, value) for key, value in rows.items()]
            for key, value in rows.items():
                if value is None:
                    stores[name].pop(key, None)
                else:
                    stores[name][key] = value
        if change.out:
            expected[out] = change.out

    def _in_order(self, task: TaskId, records: list[Record]) -> None:
        """Those of a partition of the source come in its order."""
        for record in records:
            if record.source is not None:
                source, offset = record.source
                if offset <= self._counted.get((task, source), -1):
                    self._fail(task, f"{record} comes after one of the same partition that was made later")
                self._counted[task, source] = offset

    def _follow(
        self,
        task: TaskId,
        table: str,
        partition: TopicPartition,
        records: list[tuple[int, Record]],
        expected: dict[TopicPartition, list[Record]],
        merging: dict[int, int],
    ) -> None:
        """What has to be written for these records of a task's input."""
        application = self._application
        copies = expected.setdefault(TopicPartition(f"copies-{task.subtopology}", task.partition), [])
        for offset, record in records:
            copies.append(Record(record.key, record.value, record.at, (partition, offset)))
        if not records:
            if not copies:
                del expected[TopicPartition(f"copies-{task.subtopology}", task.partition)]
            return
        if not table:
            time = max(record.at for _, record in records)
            self._stream_times[task] = max(time, self._stream_times.get(task, time))
        if not table and task.subtopology not in application.counting:
            for offset, record in records:
                number = partition_of(record.key, application.partitions)
                sent = Record(record.key, record.value, record.at, (partition, offset))
                if number in merging:
                    merging[number] += 1
                    self._merge(TaskId(*application.counting, number), sent, expected)
                else:
                    expected.setdefault(TopicPartition(REPARTITION, number), []).append(sent)
            return
        self._store(task, table, [record for _, record in records], expected)

    def _merge(self, task: TaskId, record: Record, expected: dict[TopicPartition, list[Record]]) -> None:
        """A record is counted by a task that runs beside."""
        expected.setdefault(TopicPartition(f"copies-{task.subtopology}", task.partition), []).append(record)
        self._stream_times[task] = max(record.at, self._stream_times.get(task, record.at))
        self._store(task, "", [record], expected)

    def _store(
        self, task: TaskId, table: str, records: list[Record], expected: dict[TopicPartition, list[Record]]
    ) -> None:
        changelog = self._application.changelog(task, USERS if table else COUNTS)
        rows = self.tables.setdefault(changelog, {})
        changed = dict.fromkeys(record.key for record in expected.get(changelog, ()))
        self._in_order(task, records)
        for record in records:
            assert record.value is not None
            rows[record.key] = record.value if table else rows.get(record.key, 0) + record.value
            changed[record.key] = None
        expected[changelog] = [Record(key, rows[key]) for key in changed]

    def state(self, changelog: TopicPartition, position: int) -> Rows:
        """What a store must have that is at a position of its changelog."""
        rows = {record.key: record.value for _, record in self._logs[changelog].counting(0, position)}
        return {key: value for key, value in rows.items() if value is not None}

    def check_state(self, who: object, changelog: TopicPartition, position: int, rows: Rows) -> None:
        """A store has what is committed in its changelog, up to its position, and nothing else."""
        if rows != (wanted := self.state(changelog, position)):
            self._fail(who, f"the store of {changelog} is {rows} at {position}, and should be {wanted}")

    def unread(self) -> dict[TopicPartition, int]:
        """How many records of inputs aren't counted yet."""
        return {
            at: left
            for topic in self._readers
            for number in range(self._application.partitions)
            for at in (TopicPartition(topic, number),)
            if (left := len(self._logs[at].counting(self.offsets.get(at, 0), self._logs[at].end)))
        }

    def waiting(self) -> int:
        """How many timers haven't gone off."""
        return sum(len(self.tables.get(at, ())) for at in self.tables if at.topic == "app-timers-changelog")

    def check_totals(self) -> None:
        """What has come out altogether is what the sources have."""
        match self._application.kind:
            case "join":
                self._check_pairs()
            case "sessions":
                self._check_sessions()
            case "timers":
                self._check_timers()
            case _:
                self._check_counts()

    def _check_pairs(self) -> None:
        left, right = self._of_source("in"), self._of_source("others")
        wanted: Counter[tuple[str, int | None]] = Counter(
            (one.key, pair_of("left", one.at, other.at))
            for one in left
            for other in right
            if one.key == other.key and abs(one.at - other.at) <= NEAR_MS
        )
        found = Counter((each.key, each.value) for each in self._out() if each.value != -1)
        if wanted != found:
            self._fail("pairs", f"{wanted - found} lack, {found - wanted} are too many")

    def _check_sessions(self) -> None:
        wanted: Counter[str] = Counter()
        found: Counter[str] = Counter()
        for record in self._of_source("in"):
            wanted[record.key] += record.value or 0
        for record in self._out():
            found[record.key] += record.value or 0
        for at, rows in self.tables.items():
            if at.topic == "app-totals-changelog":
                for row, total in rows.items():
                    found[row.split("@")[0]] += total
        if wanted != found:
            self._fail("sessions", f"{found}, and not {wanted}")

    def _check_timers(self) -> None:
        wanted = Counter((each.key, each.value) for each in self._of_source("in"))
        found = Counter((each.key, each.value) for each in self._out())
        if wanted != found:
            self._fail("timers", f"{wanted - found} lack, {found - wanted} are too many")

    def _of_source(self, topic: str) -> list[Record]:
        logs = [self._logs[TopicPartition(topic, number)] for number in range(self._application.partitions)]
        return [record for log in logs for _, record in log.counting(0, log.end)]

    def _out(self) -> list[Record]:
        return self._of_source("out")

    def _check_counts(self) -> None:
        wanted: Counter[str] = Counter()
        for number in range(self._application.partitions):
            log = self._logs[TopicPartition("in", number)]
            for _, record in log.counting(0, log.end):
                wanted[record.key] += record.value or 0
        found: Counter[str] = Counter()
        for at, log in self._logs.items():
            if at.topic == "app-counts-changelog":
                found.update(self.state(at, log.end))
        if found != wanted:
            self._fail("totals", f"{found}, and not {wanted}")

    @staticmethod
    def _fail(who: object, what: str) -> None:
        raise InvariantError(f"counted once: {who}: {what}")


def partition_of(key: str, partitions: int) -> int:
    """Where a key belongs."""
    return sum(map(ord, key)) % partitions
