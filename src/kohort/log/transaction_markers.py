"""Transaction markers: the control batches that end transactions (KIP-98)."""

from __future__ import annotations

import struct
from typing import Final

from kohort.log.producer_state import EndTransactionMarker
from kohort.protocol.records.batch import BatchHeader
from kohort.protocol.records.rows import encode_records, read_records

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1


def encode_marker(producer_id: int, producer_epoch: int, marker: EndTransactionMarker, timestamp: int) -> bytearray:
    """Encodes a marker's batch; `timestamp` is in ms since 1970."""
    key = _KEY.pack(_VERSION, _COMMIT if marker.commit else _ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return encode_records(
        [(key, value)],
        timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def read_marker(data: bytes, header: BatchHeader) -> EndTransactionMarker | None:
    """Reads a control batch; None if compaction has emptied it, or it has another type.

    Raises:
        CorruptRecordError: its record is malformed.
    """
    for record in read_records(data, header):
        if record.key is None or len(record.key) < _KEY.size or record.value is None or len(record.value) < _VALUE.size:
            continue
        _, kind = _KEY.unpack_from(record.key)
        if kind in (_ABORT, _COMMIT):
            return EndTransactionMarker(kind == _COMMIT, _VALUE.unpack_from(record.value)[1])
    return None
