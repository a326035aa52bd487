"""Batches as clients send them, and helpers to read a log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kohort.log import Log, LogConfig
from kohort.protocol.records.batch import (
    HEADER_SIZE,
    LENGTH_END,
    BatchHeader,
    Compression,
    check_batches,
    read_header,
    write_header,
)
from kohort.protocol.records.compression import compress
from kohort.protocol.records.rows import PlainRecord, encode_records, read_records

NOW = 1_700_000_000_000
Pair = tuple[bytes | None, bytes | None]


def pairs(count: int, size: int = 10) -> list[Pair]:
    return [(b"key %d" % number, b"v" * size) for number in range(count)]


def batch(
    records: int | Iterable[Pair] = 1,
    timestamp: int = NOW,
    *,
    producer: tuple[int, int] | None = None,
    sequence: int = 0,
    transactional: bool = False,
    codec: Compression = Compression.NONE,
    **fields: int,
) -> bytes:
    """A batch of records; `fields` of its header are set to what shouldn't be there, with a checksum to match."""
    producer_id, epoch = producer or (-1, -1)
    wanted = pairs(records) if isinstance(records, int) else records
    data = encode_records(wanted, timestamp, producer_id=producer_id, producer_epoch=epoch, transactional=transactional)
    header = read_header(data)
    if codec:
        packed = compress(codec, bytes(data[HEADER_SIZE:]))
        data[HEADER_SIZE:] = packed
        header = header._replace(batch_length=len(data) - LENGTH_END, attributes=header.attributes | codec)
    header = header._replace(base_sequence=sequence if producer else -1)
    write_header(data, header._replace(**fields))
    return bytes(data)


def open_log(path: Path, now: int = NOW, *, clean: bool = True, durable: bool = False, **config: object) -> Log:
    settings = LogConfig(**config)  # type: ignore[arg-type]
    return Log.open(path / "topic-0", settings, now=now, clean=clean, durable=durable)


def headers_of(log: Log, start: int | None = None) -> list[BatchHeader]:
    return [header for header, _ in everything(log, start)]


def records_of(log: Log, start: int | None = None) -> list[PlainRecord]:
    """All records that aren't markers."""
    return [record for header, records in everything(log, start) if not header.control for record in records]


def everything(log: Log, start: int | None = None) -> list[tuple[BatchHeader, list[PlainRecord]]]:
    offset = log.log_start_offset if start is None else start
    found = []
    while offset < log.high_watermark:
        data = log.read(offset, 1 << 20, up_to=log.high_watermark)
        if not data:
            break
        for header in check_batches(data):
            found.append((header, read_records(data, header)))
            offset = header.next_offset
    return found
