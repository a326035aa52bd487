"""The log of `__cluster_metadata`: the records of topics, configurations and producer id blocks."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kohort.broker.features import METADATA_VERSION, SUPPORTED
from kohort.log import Log, Origin
from kohort.log.damage import Range, known_losses, repair_command, unknown
from kohort.protocol.errors import CorruptRecordError, KafkaError, ProtocolError
from kohort.protocol.records.batch import BatchHeader, check_batch, scan_batches
from kohort.protocol.records.rows import encode_records, read_records
from kohort.protocol.stored.cluster_metadata import FeatureLevelRecord, MetadataRecord, decode_metadata, encode_metadata

LEVEL: Final = FeatureLevelRecord(name=METADATA_VERSION, feature_level=SUPPORTED[METADATA_VERSION].highest)
"""The first record of a metadata log: the newest metadata version."""

READ_BYTES: Final = 4 * 1024 * 1024


class MetadataLog:
    """Appends metadata records, and reads them back.

    Args:
        clock: ms since 1970.
        durable: whether appends are synced to the disk.

    Raises:
        OSError: the first record can't be written.
    """

    def __init__(self, logged: Log, clock: Callable[[], int], durable: bool) -> None:
        self.log = logged
        self._clock = clock
        self._durable = durable
        self._known = known_losses(logged.directory)
        if logged.log_end_offset == 0:
            try:
                self.append([LEVEL])
            except KafkaError as error:
                raise unusable(logged.directory, str(error)) from error

    def append(self, records: list[MetadataRecord]) -> None:
        """Appends records as one batch: all of them count, or none.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        batch = encode_records([(None, encode_metadata(record)) for record in records], self._clock())
        self.log.append(batch, now=self._clock(), origin=Origin.COORDINATOR)
        if self._durable:
            self.log.flush()

    def records(self) -> Iterator[MetadataRecord]:
        """Yields all records, from the first on.

        Raises:
            OSError: records can't be read, or are damaged; the message says what to do.
        """
        offset = self.log.log_start_offset
        try:
            while offset < self.log.log_end_offset:
                for header, records in self._batches_at(offset):
                    offset = header.next_offset
                    yield from records
        except (CorruptRecordError, KafkaError, ProtocolError) as error:
            raise unusable(self.log.directory, f"from offset {offset} on: {error}") from error

    def _batches_at(self, offset: int) -> Iterator[tuple[BatchHeader, list[MetadataRecord]]]:
        """Yields at least one batch from `offset` on. A metadata log has no gaps but those of known losses."""
        data = self.log.read(offset, READ_BYTES, up_to=self.log.log_end_offset)
        expected = offset
        for header in scan_batches(data):
            check_batch(data, header.position)
            gap = Range(expected, header.base_offset)
            if gap.end < gap.first or unknown(gap, self._known):
                raise CorruptRecordError(header.base_offset, header.position, f"offset {expected} should come here")
            expected = header.next_offset
            values = [record.value for record in read_records(data, header) if record.value is not None]
            yield header, [decoded for value in values if (decoded := decode_metadata(value)) is not None]
        if expected == offset:
            raise CorruptRecordError(offset, 0, "there is no complete batch")


def unusable(directory: Path, reason: str) -> OSError:
    """The error, with advice for the operator, where the metadata log can't be used."""
    advice = (
        "It says which topics there are: restore it from a backup and start again. To go on without the damaged "
        "records, and the topics, settings, users and access rules in them, keep a copy of the data directory and run: "
        f"{repair_command(directory)}. Or move the metadata "
        "log away and remove its line from recovery-point-offset-checkpoint: the server begins without topics then, "
        "and sets their partitions aside in directories of their own (-stray)"
    )
    return OSError(errno.EIO, f"the metadata log can't be used: {reason}. {advice}", str(directory))
