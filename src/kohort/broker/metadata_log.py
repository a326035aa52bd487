"""The log of `__cluster_metadata`: what `topics` is made of, on disk with the guarantees of any partition."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final

from kohort.log import Log, Origin
from kohort.protocol.records.batch import scan_batches
from kohort.protocol.records.plain import encode_records, read_records
from kohort.protocol.stored.cluster_metadata import FeatureLevelRecord, MetadataRecord, decode_metadata, encode_metadata

__all__ = ["MetadataLog"]

log = logging.getLogger("kohort.broker.metadata")

LEVEL: Final = FeatureLevelRecord(name="metadata.version", feature_level=29)
"""What a metadata log begins with: the level at which Kafka 4.2 writes its records (4.2-IV1)."""

READ_AT_ONCE: Final = 4 * 1024 * 1024


class MetadataLog:
    """Appends records, and reads them back.

    Args:
        logged: the partition.
        clock: ms since 1970.
        durable: whether what is appended shall be on the disk before it counts.
    """

    def __init__(self, logged: Log, clock: Callable[[], int], durable: bool) -> None:
        self.log = logged
        self._clock = clock
        self._durable = durable
        if logged.log_end_offset == 0:
            self.append([LEVEL])

    def append(self, records: list[MetadataRecord | FeatureLevelRecord]) -> None:
        """Append records as one batch: all of them count, or none.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        batch = encode_records([(None, encode_metadata(record)) for record in records], self._clock())
        self.log.append(batch, now=self._clock(), origin=Origin.COORDINATOR)
        if self._durable:
            self.log.flush()

    def records(self) -> Iterator[MetadataRecord]:
        """All records, from the first on."""
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            data = self.log.read(offset, READ_AT_ONCE, up_to=self.log.log_end_offset)
            for header in scan_batches(data):
                offset = header.next_offset
                for record in read_records(data, header):
                    decoded = None if record.value is None else decode_metadata(record.value)
                    if decoded is not None:
                        yield decoded
