"""The runtime of the coordinators: appends a step's records to the log, replays them, and sends its responses.

A coordinator has a shard for each partition of its internal topic. The records of a step are appended to that
partition as one batch, atomically, before its responses are sent. At start-up the partition is replayed into the
shard, and requests are refused with COORDINATOR_LOAD_IN_PROGRESS until then.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.features import Features
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.periodic_tasks import PeriodicTask
from kohort.broker.reply import Reply
from kohort.broker.topics import Partition, Topics
from kohort.coordinator.step import Record, Step, append_error
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.log import Origin
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError, ProtocolError
from kohort.protocol.message import Data
from kohort.protocol.messages.control_records import ControlRecordTypeSchema
from kohort.protocol.records.batch import BatchHeader
from kohort.protocol.records.rows import PlainRecord, encode_records, read_records
from kohort.protocol.stored import decode_key, record_type

log = logging.getLogger("kohort.broker.coordinator_runtime")

LOAD_BYTES_PER_TURN: Final = 1024 * 1024
"""Bytes of a coordinator's log replayed before other work gets its turn."""

COMMIT_MARKER: Final = 1

CACHED_KEYS: Final = 100_000
LONGEST_CACHED_KEY: Final = 256
"""Limits of the cache of keys' partitions: clients may send any number of keys of any length."""


class Shard(Protocol):
    """A coordinator's shard, as the runtime uses it."""

    pending_steps: list[Step]

    def replay(self, key: Data, value: Data | None, producer: tuple[int, int] | None) -> None:
        """Applies a record; `producer` is the producer id and epoch of its transaction."""
        ...

    def loaded(self, now: int) -> None:
        """Called when the log has been replayed."""
        ...


S = TypeVar("S", bound=Shard)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class CoordinatorEnvironment:
    """What coordinators need of the broker.

    Attributes:
        flusher: says when the records of a step are safe.
        clock: ms since 1970.
    """

    topics: Topics
    flusher: LogFlusher
    wheel: TimingWheel
    config: DynamicConfig
    features: Features
    clock: Callable[[], int]


class ShardState(enum.Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class Entry(Generic[S]):
    """A shard with its partition.

    Attributes:
        draining: whether steps that were left in the shard are being performed, and those that they leave will be.
    """

    __slots__ = ("draining", "partition", "shard", "state")

    def __init__(self, partition: Partition, shard: S) -> None:
        self.partition = partition
        self.shard = shard
        self.state = ShardState.LOADING
        self.draining = False


def partition_for(key: str, partitions: int) -> int:
    """The partition of an internal topic for a group id or transactional id, by Java's hash of strings."""
    code = 0
    for char in key.encode("utf-16-be").hex(" ", 2).split():
        code = (31 * code + int(char, 16)) & 0xFFFFFFFF
    # Kafka takes the absolute value of the signed hash, and 0 for the one without.
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


class CoordinatorRuntime(ABC, Generic[S]):
    """Runs the shards of a coordinator.

    Args:
        topic: the internal topic of its state.
        partitions: the number of partitions if the topic has to be created.
        configs: the topic's configuration.
    """

    def __init__(
        self, environment: CoordinatorEnvironment, topic: str, partitions: int, configs: dict[str, str]
    ) -> None:
        self.environment = environment
        self._clock = environment.clock
        self.topic = topic
        self.partitions = partitions
        self._configs = configs
        self._entries: list[Entry[S]] = []
        self._partition_of: dict[str, int] = {}
        self._loading: set[asyncio.Task[None]] = set()

    @abstractmethod
    def make(self, partition: int) -> S:
        """Returns a new, empty shard."""

    def value_version(self, value: Data) -> int:
        """The version that a record's value is encoded in."""
        return value.__message__.versions[-1]

    def replay(self, shard: S, offset: int, key: Data, value: Data | None, producer: tuple[int, int] | None) -> None:
        """Applies the record at an offset of the log."""
        shard.replay(key, value, producer)

    def replay_marker(self, shard: S, producer_id: int, producer_epoch: int, commit: bool) -> None:
        """Applies a marker: a transaction that wrote to the shard's partition has ended. Only for groups."""

    def after(self, entry: Entry[S], step: Step) -> None:
        """Called when a step's records are written and its responses sent. Only for transactions."""

    def periodic_tasks(self) -> Sequence[PeriodicTask]:
        """What the coordinator does at intervals."""
        return ()

    # Loading

    def start(self) -> None:
        """Creates the topic if it doesn't exist, and loads it. An empty one is loaded when this returns.

        Raises:
            KafkaError: the topic can't be created.
        """
        if self._entries:
            return
        topic = self.environment.topics.get(self.topic)
        new = topic is None
        if topic is None:
            topic = self.environment.topics.create(self.topic, self.partitions, self._configs)
        self._entries = [Entry(partition, self.make(partition.index)) for partition in topic.partitions]
        self.partitions = len(self._entries)
        self._partition_of.clear()
        # An offline log knows no end: what it has isn't known, rather than nothing.
        if new or all(part.offline is None and part.log.log_end_offset == 0 for part in topic.partitions):
            for entry in self._entries:
                self._activate(entry)
        else:
            self._load_in_background(self._entries)

    def _load_in_background(self, entries: list[Entry[S]]) -> None:
        task = asyncio.get_running_loop().create_task(self._load(entries))
        self._loading.add(task)
        task.add_done_callback(self._loading.discard)

    def partition_regained(self, partition: Partition) -> None:
        """Loads the shard of a partition that couldn't be read before, and is online now."""
        failed = [entry for entry in self._entries if entry.partition is partition and entry.state is ShardState.FAILED]
        for entry in failed:
            entry.shard = self.make(partition.index)
            entry.state = ShardState.LOADING
        if failed:
            self._load_in_background(failed)

    def resume(self) -> None:
        """Loads the topic at start-up, if it exists."""
        if self.environment.topics.get(self.topic) is not None:
            self.start()

    async def stop(self) -> None:
        loading = list(self._loading)
        for task in loading:
            task.cancel()
        await asyncio.gather(*loading, return_exceptions=True)

    async def _load(self, entries: list[Entry[S]]) -> None:
        began = self._clock()
        count = 0
        for entry in entries:
            try:
                async for batches in _batches(entry.partition):
                    count += self._replay_all(entry.shard, batches)
                self._activate(entry)
            except KafkaError as error:
                entry.state = ShardState.FAILED
                log.error("could not load the coordinator's state: %s", error)
            except Exception:
                # A partition that can't be read doesn't affect the shards of the others.
                entry.state = ShardState.FAILED
                log.exception("could not load the coordinator's state from %s", entry.partition)
        took = self._clock() - began
        log.info("coordinator loaded topic=%s partitions=%d records=%d ms=%d", self.topic, len(entries), count, took)

    def _activate(self, entry: Entry[S]) -> None:
        entry.state = ShardState.ACTIVE
        entry.shard.loaded(self._clock())
        self._drain(entry)

    def _replay_all(self, shard: S, batches: list[tuple[BatchHeader, list[PlainRecord]]]) -> int:
        count = 0
        for header, records in batches:
            if header.control:
                for record in records:
                    assert record.key is not None
                    kind = ControlRecordTypeSchema.read(record.key, 2, 0)[0].type
                    self.replay_marker(shard, header.producer_id, header.producer_epoch, kind == COMMIT_MARKER)
                continue
            producer = (header.producer_id, header.producer_epoch) if header.transactional else None
            for record in records:
                count += self._replay_one(shard, record, producer)
        return count

    def _replay_one(self, shard: S, record: PlainRecord, producer: tuple[int, int] | None) -> int:
        if record.key is None:
            log.warning("a record without a key in %s at offset %d is skipped", self.topic, record.offset)
            return 0
        try:
            kind, key = decode_key(self.topic, record.key)
            value = None if record.value is None else kind.decode_value(record.value)[0]
        except ProtocolError as error:
            # As Kafka does: a newer broker may have written it.
            log.warning("a record in %s at offset %d is skipped: %s", self.topic, record.offset, error)
            return 0
        self.replay(shard, record.offset, key, value, producer)
        return 1

    # Requests

    def entry(self, key: str) -> Entry[S]:
        """Returns the shard of a key, with its partition.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE, and what `start` raises.
        """
        if not self._entries:
            self.start()
        partition = self._partition_of.get(key)
        if partition is None:
            partition = partition_for(key, len(self._entries))
            if len(self._partition_of) >= CACHED_KEYS:
                self._partition_of.clear()
            if len(key) <= LONGEST_CACHED_KEY:
                self._partition_of[key] = partition
        entry = self._entries[partition]
        if entry.state is not ShardState.ACTIVE:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                if entry.state is ShardState.LOADING
                else ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
        return entry

    def submit(
        self, key: str, operation: Callable[[S, int, Callable[[R], None]], Step], refuse: Callable[[ErrorCode], R]
    ) -> R | Reply[R]:
        """Runs an operation on the shard of a key.

        Args:
            key: group id or transactional id.
            operation: takes the shard, the time and the reply to set, and returns a step.
            refuse: makes the response for an error.

        Returns:
            The response, or a reply if it comes later.
        """
        try:
            entry = self.entry(key)
        except KafkaError as error:
            return refuse(error.code)
        reply: Reply[R] = Reply()
        self.perform(entry, operation(entry.shard, self._clock(), reply))
        if reply.done:
            return reply.value  # type: ignore[return-value]
        return reply

    def active(self) -> Iterator[S]:
        """The shards that are loaded."""
        return (entry.shard for entry in self._entries if entry.state is ShardState.ACTIVE)

    def loading(self) -> bool:
        """Whether a shard is still being loaded."""
        return any(entry.state is ShardState.LOADING for entry in self._entries)

    def drain(self) -> None:
        """Performs the steps that timers have left in the shards."""
        for entry in self._entries:
            if entry.shard.pending_steps:
                self._drain(entry)

    def each(self, operation: Callable[[S], Step]) -> None:
        """Runs an operation on every loaded shard."""
        for entry in self._entries:
            if entry.state is ShardState.ACTIVE:
                self.perform(entry, operation(entry.shard))

    def _drain(self, entry: Entry[S]) -> None:
        """Performs the steps that are left, one after another: nested, a thousand would be too deep for the stack."""
        if entry.draining:
            return
        entry.draining = True
        try:
            while entry.shard.pending_steps:
                self.perform(entry, entry.shard.pending_steps.pop(0))
        finally:
            entry.draining = False

    # Steps

    def perform(self, entry: Entry[S], step: Step) -> None:
        """Appends a step's records, replays and applies them, and sends its responses once they are safe."""
        records = step.records
        if not records:
            if step.apply is not None:
                step.apply()
            self._finish(entry, step)
        else:
            logged = entry.partition.log
            try:
                appended = logged.append(
                    self._encode(records, step.producer),
                    now=self._clock(),
                    leader_epoch=entry.partition.leader_epoch,
                    origin=Origin.COORDINATOR,
                )
            except KafkaError as error:
                self._fail(entry, step, error)
                return
            except ProtocolError as error:  # such as the name of a group that is too long for a record
                self._fail(entry, step, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
                return
            shard = entry.shard
            for offset, (key, value) in enumerate(records, appended.base_offset):
                self.replay(shard, offset, key, value, step.producer)
            if step.apply is not None:
                step.apply()
            self.environment.flusher.when_safe(
                logged,
                lambda: self._finish(entry, step),
                lambda error: self._fail(entry, step, error),
            )
        if entry.shard.pending_steps:
            self._drain(entry)

    def _finish(self, entry: Entry[S], step: Step) -> None:
        _respond(step)
        self.after(entry, step)

    def _fail(self, entry: Entry[S], step: Step, error: KafkaError) -> None:
        log.error("the coordinator could not write to %s: %s", entry.partition, error)
        if step.failed is not None:
            self.perform(entry, step.failed(append_error(error.code)))
        else:
            _respond(step)

    def _encode(self, records: list[Record], producer: tuple[int, int] | None) -> bytearray:
        pairs = []
        for key, value in records:
            kind = record_type(self.topic, key.__message__.key)
            pairs.append(
                (kind.encode_key(key), None if value is None else kind.encode_value(value, self.value_version(value)))
            )
        if producer is None:
            return encode_records(pairs, self._clock())
        return encode_records(
            pairs, self._clock(), producer_id=producer[0], producer_epoch=producer[1], transactional=True
        )


def _respond(step: Step) -> None:
    for reply, response in step.answers:
        try:
            reply(response)
        except Exception:  # of one client's connection; the others must get their responses
            log.exception("a response could not be sent")


async def _batches(partition: Partition) -> Any:
    """Yields the batches of a coordinator's partition with their records; other work gets its turn in between.

    Damaged batches are reported and passed over: what comes after them is newer.
    """
    out, size = [], 0
    for header, data, _ in partition.log.valid_batches():
        try:
            out.append((header, read_records(data, header)))
        except CorruptRecordError as error:  # records that don't match a header with a valid checksum
            log.error("%s: offsets %d to %d are skipped: %s", partition, header.base_offset, header.last_offset, error)
        size += header.size
        if size >= LOAD_BYTES_PER_TURN:
            yield out
            out, size = [], 0
            await asyncio.sleep(0)
    yield out
