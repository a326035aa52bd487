"""Producer snapshots: a log's producer state on disk, in Kafka's format; the file's name is its offset."""

from __future__ import annotations

import logging
import struct
from pathlib import Path
from typing import Final

from kohort.log.files import SNAPSHOT, file_name, read_whole, write_atomically
from kohort.log.producer_state import BatchMetadata, ProducerState, ProducerStates
from kohort.protocol.crc32c import crc32c

_log: Final = logging.getLogger("kohort.log")

_VERSION: Final = 1
_HEADER: Final = struct.Struct(">hIi")
_CRC_FROM: Final = 6
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_MAX_SEQUENCE: Final = 2**31 - 1


def write_snapshot(directory: Path, offset: int, producers: ProducerStates) -> None:
    """Writes the producer state at `offset`; the format has only the last batch of each producer."""
    body = bytearray()
    for producer in producers.by_id.values():
        last = producer.batches[-1] if producer.batches else BatchMetadata(-1, -1, -1, 0, -1)
        body += _ENTRY.pack(
            producer.producer_id, producer.epoch, last.last_sequence, last.last_offset, last.offset_delta,
            producer.last_timestamp, producer.coordinator_epoch, producer.first_offset,
        )  # fmt: skip
    count = struct.pack(">i", len(producers.by_id))
    header = _HEADER.pack(_VERSION, crc32c(body, crc32c(count)), len(producers.by_id))
    write_atomically(directory / file_name(offset, SNAPSHOT), header + body, sync=False)


def read_snapshot(data: bytes) -> list[ProducerState]:
    """Decodes a snapshot.

    Raises:
        ValueError: it is damaged, or has another version.
    """
    try:
        version, crc, count = _HEADER.unpack_from(data)
    except struct.error:
        raise ValueError(f"{len(data)} bytes are no snapshot") from None
    if version != _VERSION:
        raise ValueError(f"version {version}, {_VERSION} is expected")
    if crc32c(data[_CRC_FROM:]) != crc:
        raise ValueError("the checksum is wrong")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise ValueError(f"{count} producers in {len(data)} bytes")
    producers = []
    for entry in _ENTRY.iter_unpack(data[_HEADER.size :]):
        producer = ProducerState(entry[0])
        _, producer.epoch, last_sequence, last_offset, delta, timestamp, producer.coordinator_epoch, first = entry
        producer.last_timestamp = timestamp
        producer.first_offset = first if first >= 0 else -1
        if last_offset >= 0:
            # After a wrap the first sequence is above the last; without a sequence both are -1.
            first_sequence = (last_sequence - delta) & _MAX_SEQUENCE if last_sequence >= 0 else last_sequence
            producer.batches.append(BatchMetadata(first_sequence, last_sequence, last_offset, delta, timestamp))
        producers.append(producer)
    return producers


def load_snapshot(directory: Path, offsets: list[int], producers: ProducerStates) -> int | None:
    """Loads the latest valid snapshot among `offsets` (ascending) into `producers`, and returns its offset.

    Invalid snapshots are deleted.
    """
    for offset in reversed(offsets):
        path = directory / file_name(offset, SNAPSHOT)
        try:
            loaded = read_snapshot(read_whole(path))
        except FileNotFoundError:
            continue
        except ValueError as error:
            _log.warning("%s: deleted, as it is invalid: %s; the log is replayed instead", path, error)
            path.unlink(missing_ok=True)
            continue
        for producer in loaded:
            producers.add(producer)
        return offset
    return None
