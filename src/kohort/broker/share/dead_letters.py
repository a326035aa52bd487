"""Dead letters (KIP-1191): what a share group gave up goes to a topic, with the reason in its headers.

A record that is rejected, or was delivered too often, is ARCHIVING until its dead letter is written, also across
restarts; then it is ARCHIVED. So a crash may write a letter twice, but loses none. Where a letter can't be written
(there is no topic, or it isn't open to dead letters), the record is archived without one, and the log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kohort.broker.config import topic_value
from kohort.broker.dynamic_config import DynamicConfig
from kohort.broker.log_flusher import LogFlusher
from kohort.broker.share.hosted_partition import HostedSharePartition
from kohort.broker.share.reading import read_batches
from kohort.broker.topics import Topic, Topics
from kohort.coordinator.share_partition import DeadLetter
from kohort.log.types import Origin
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError
from kohort.protocol.records.batch import HEADER_SIZE
from kohort.protocol.records.rows import encode_rows, read_records, row_size

log = logging.getLogger("kohort.broker.share")

TOPIC: Final = "__dlq.errors.topic"
PARTITION: Final = "__dlq.errors.partition"
OFFSET: Final = "__dlq.errors.offset"
GROUP: Final = "__dlq.errors.group"
DELIVERY_COUNT: Final = "__dlq.errors.delivery.count"
MESSAGE: Final = "__dlq.errors.message"
"""Headers of a dead letter; all values are text."""

_READ_BYTES: Final = 1 << 20

_Row = tuple[bytes | None, bytes | None]


class DeadLetterQueue:
    """Writes dead letters.

    Args:
        clock: ms since 1970.

    Attributes:
        written, failed: records with a dead letter, and without one where there should be one.
    """

    def __init__(self, topics: Topics, config: DynamicConfig, flusher: LogFlusher, clock: Callable[[], int]) -> None:
        self._topics = topics
        self._config = config
        self._flusher = flusher
        self._clock = clock
        self.written = 0
        self.failed = 0

    def write(self, hosted: HostedSharePartition, letters: Sequence[DeadLetter]) -> None:
        """Writes dead letters, and tells the share partition when they are safe.

        All that came of a request are written together: one by one, each would read and decode its batch again.
        """
        letters = sorted(letters, key=lambda letter: letter.first_offset)
        count = sum(letter.last_offset - letter.first_offset + 1 for letter in letters)

        def safe() -> None:
            self.written += count
            hosted.dead_lettered(letters)

        def failed(error: KafkaError) -> None:
            self.failed += count
            first, last = letters[0].first_offset, letters[-1].last_offset
            log.error("%d records from %d to %d of %s have no dead letter: %s", count, first, last, hosted, error)
            hosted.dead_lettered(letters)

        try:
            topic = self._topic(hosted)
            target = topic.partitions[hosted.partition.index % len(topic.partitions)]
            for batch in self._batches(hosted, letters, target.log.config.max_message_bytes):
                target.log.append(batch, now=self._clock(), leader_epoch=target.leader_epoch, origin=Origin.COORDINATOR)
        except KafkaError as error:
            failed(error)
            return
        self._flusher.when_safe(target.log, safe, failed)

    def _topic(self, hosted: HostedSharePartition) -> Topic:
        """The group's topic of dead letters, created if that is allowed.

        Raises:
            KafkaError: there is none that it may use.
        """
        name = hosted.settings.dead_letter_topic
        prefix = self._config.current.text("errors.deadletterqueue.topic.name.prefix")
        if not name:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "the group has no topic of dead letters any more")
        if name.startswith("__") or not name.startswith(prefix):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"topic {name!r} can't have dead letters: names begin with errors.deadletterqueue.topic.name.prefix, "
                f"{prefix!r}, and not with '__'",
            )
        topic = self._topics.get(name)
        if topic is None:
            if not self._config.current.flag("errors.deadletterqueue.auto.create.topics.enable"):
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"there is no topic {name!r}: create it with errors.deadletterqueue.group.enable=true, or set "
                    "errors.deadletterqueue.auto.create.topics.enable",
                )
            configs = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
            return self._topics.create(name, self._config.current.int("num.partitions"), configs)
        if not topic_value(self._config.current, topic.configs, "errors.deadletterqueue.group.enable"):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"topic {name!r} has no errors.deadletterqueue.group.enable=true"
            )
        return topic

    def _batches(
        self, hosted: HostedSharePartition, letters: Sequence[DeadLetter], max_bytes: int
    ) -> Iterator[bytearray]:
        """Batches of dead letters, none larger than the topic allows.

        A record may be smaller than that, and its letter, with the headers, be larger: then it has no copy.
        """
        now = self._clock()
        copies = _copies(hosted, letters) if hosted.settings.copy_dead_letters else iter(())
        following = next(copies, None)
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        headers: list[list[tuple[str, bytes | None]]] = []
        size = HEADER_SIZE
        for letter, offset in _offsets(letters):
            while following is not None and following[0] < offset:
                following = next(copies, None)
            key, value = (None, None) if following is None or following[0] != offset else following[1]
            about = _headers(hosted, letter, offset)
            more = row_size(key, value, about)
            if HEADER_SIZE + more > max_bytes:
                key = value = None
                more = row_size(key, value, about)
            if keys and size + more > max_bytes:
                yield encode_rows([now] * len(keys), keys, values, headers)
                keys, values, headers, size = [], [], [], HEADER_SIZE
            keys.append(key)
            values.append(value)
            headers.append(about)
            size += more
        yield encode_rows([now] * len(keys), keys, values, headers)


def _headers(hosted: HostedSharePartition, letter: DeadLetter, offset: int) -> list[tuple[str, bytes | None]]:
    texts = (
        (TOPIC, hosted.partition.topic.name),
        (PARTITION, str(hosted.partition.index)),
        (OFFSET, str(offset)),
        (GROUP, hosted.group_id),
        (DELIVERY_COUNT, str(letter.delivery_count)),
        (MESSAGE, letter.cause.value),
    )
    return [(name, text.encode()) for name, text in texts]


def _offsets(letters: Iterable[DeadLetter]) -> Iterator[tuple[DeadLetter, int]]:
    for letter in letters:
        for offset in range(letter.first_offset, letter.last_offset + 1):
            yield letter, offset


def _copies(hosted: HostedSharePartition, letters: Iterable[DeadLetter]) -> Iterator[tuple[int, _Row]]:
    """Offset, key and value of the records, with others between them; what can't be read any more is left out.

    Each batch is decoded once at most, and only when its records are asked for.
    """
    at = 0
    for letter in letters:
        at = max(at, letter.first_offset)
        while at <= letter.last_offset:
            try:
                batches = read_batches(
                    hosted.partition.log,
                    max(at, hosted.partition.log.log_start_offset),
                    _READ_BYTES,
                    committed=False,
                    min_one=True,
                    max_records=letter.last_offset - at + 1,
                )
                if not batches.headers:
                    return
                for header in batches.headers:
                    if not header.control:
                        for record in read_records(batches.data, header):
                            yield record.offset, (record.key, record.value)
            except (KafkaError, CorruptRecordError) as error:
                log.error("records of %s can't be copied to their dead letters: %s", hosted, error)
                return
            at = batches.headers[-1].next_offset
