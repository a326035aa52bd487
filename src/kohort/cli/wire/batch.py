"""`kohort wire batch`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from kohort.cli.bytes_input import read_bytes
from kohort.cli.terminal import err, fail, json_text, print_lines
from kohort.plurals import several

if TYPE_CHECKING:
    from kohort.protocol.errors import CorruptRecordError
    from kohort.protocol.records.batch import BatchHeader
    from kohort.protocol.records.trace import TracedRecord

_NO_TEXT: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters except tab and line ends: a value that has them isn't text."""


def batch(
    source: Annotated[
        str, typer.Argument(metavar="FILE|-|HEX", help="Batches: a log segment, standard input, or hex digits.")
    ],
    annotate: Annotated[bool, typer.Option("--annotate", help="Print hexdumps, each field labelled.")] = False,
    headers_only: Annotated[bool, typer.Option("--headers", help="Leave the records out.")] = False,
    limit: Annotated[
        int,
        typer.Option(
            "--max-bytes",
            "--limit",
            min=1,
            metavar="BYTES",
            help="Bytes that one batch may expand to when it is decompressed.",
        ),
    ] = 64 * 1024 * 1024,
) -> None:
    """Show record batches: headers and records, checked, as JSON or as labelled hexdumps.

    kohort wire batch /var/lib/kafka/orders-0/00000000000000000000.log --headers
    """
    from kohort.protocol.errors import CorruptRecordError
    from kohort.protocol.records.batch import check_batch

    data = read_bytes(source)
    position = 0
    between = "["
    tail = None
    fault = None
    try:
        while position < len(data) and (tail := _tail(data, position)) is None:
            header = check_batch(data, position)
            if annotate:
                _print_dump(data, header, headers_only, limit)
            else:
                typer.echo(f"{between}\n{_as_json(data, header, headers_only, limit)}", nl=False)
            between = ","
            position = header.end
    except CorruptRecordError as error:
        fault = error
    if not annotate:
        typer.echo("[]" if between == "[" else "\n]")
    if fault is not None:
        _refuse(fault, data, annotate)
    if tail is not None:
        err.print(f"note: {tail}", soft_wrap=True)


def _tail(data: bytes, position: int) -> str | None:
    """Describes a tail without a whole batch that isn't an error; None otherwise.

    Brokers cut off the last batch of a fetch response at its size limit, and fill a new segment with zeros.
    """
    from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_AT, LENGTH_END, MAGIC, MAGIC_AT

    left = len(data) - position
    zeros = left >= LENGTH_END and not any(data[position : position + HEADER_SIZE])
    if zeros and data.count(0, position) == left:
        return f"{left} bytes of zeros at byte {position}: unused space of the segment"
    start = data[position : position + MAGIC_AT + 1]
    if len(start) <= MAGIC_AT:
        # Too short to decide: a batch counts as cut off if another one is before it.
        return f"the last batch is cut off: {left} bytes at byte {position}" if position else None
    size = LENGTH_END + int.from_bytes(start[LENGTH_AT:LENGTH_END], "big", signed=True)
    if start[MAGIC_AT] != MAGIC or size < HEADER_SIZE or size <= left:
        return None
    return f"the last batch is cut off: {left} of its {size} bytes at byte {position}"


def _as_json(data: bytes, header: BatchHeader, headers_only: bool, limit: int) -> str:
    from kohort.protocol.records.batch import Compression
    from kohort.protocol.records.trace import trace_batch

    shown: dict[str, Any] = {
        "Position": header.position,
        "BaseOffset": header.base_offset,
        "LastOffset": header.last_offset,
        "Size": header.size,
        "PartitionLeaderEpoch": header.partition_leader_epoch,
        "Magic": header.magic,
        "Crc": header.crc,
        "Compression": Compression(header.compression).name.lower(),
        "TimestampType": "LogAppendTime" if header.log_append_time else "CreateTime",
        "IsTransactional": header.transactional,
        "IsControl": header.control,
        "DeleteHorizonMs": header.delete_horizon,
        "BaseTimestamp": header.base_timestamp,
        "MaxTimestamp": header.max_timestamp,
        "ProducerId": header.producer_id,
        "ProducerEpoch": header.producer_epoch,
        "BaseSequence": header.base_sequence,
        "RecordCount": header.record_count,
    }
    if not headers_only:
        traced = trace_batch(data, header.position, limit, label=False)
        shown["Records"] = [_record(record, header.control) for record in traced.records]
    return json_text(shown)


def _record(record: TracedRecord, control: bool) -> dict[str, Any]:
    """A record as JSON: bytes that are text as text, others as hex under another name."""
    shown: dict[str, Any] = {"Offset": record.offset, "Timestamp": record.timestamp}
    if control:
        shown["Control"] = _control_type(record.key)
    shown |= _blob("Key", record.key) | _blob("Value", record.value)
    shown["Headers"] = [{"Key": name} | _blob("Value", value) for name, value in record.headers]
    return shown


def _control_type(key: bytes | None) -> str:
    names = ("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS")
    number = int.from_bytes(key[2:4], "big") if key is not None and len(key) >= 4 else -1
    return names[number] if 0 <= number < len(names) else f"unknown ({number})"


def _blob(name: str, raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        return {name: None}
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return {f"{name}Hex": raw.hex()}
    return {f"{name}Hex": raw.hex()} if _NO_TEXT.search(text) else {name: text}


def _print_dump(data: bytes, header: BatchHeader, headers_only: bool, limit: int) -> None:
    from kohort.cli.hexdump import labelled
    from kohort.protocol.records.batch import Compression
    from kohort.protocol.records.trace import trace_batch

    compression = Compression(header.compression).name.lower()
    title = f"Batch at byte {header.position}: {several(header.record_count, 'record')}, {compression}"
    if headers_only:
        _print_header(data, header, title)
        return
    traced = trace_batch(data, header.position, limit)
    print_lines([[(title, "bold")]])
    print_lines(labelled(data[header.position : header.end], traced.spans, header.position))
    if traced.payload_spans:
        print_lines([[(f"Its records, decompressed: {len(traced.payload)} bytes", "bold")]])
        print_lines(labelled(traced.payload, traced.payload_spans))


def _print_header(data: bytes, header: BatchHeader, title: str) -> None:
    from kohort.cli.hexdump import labelled
    from kohort.protocol.records.batch import HEADER_SIZE
    from kohort.protocol.records.trace import header_spans

    raw = data[header.position : header.position + HEADER_SIZE]
    print_lines([[(title, "bold")]])
    print_lines(labelled(raw, header_spans(header), header.position))


def _refuse(error: CorruptRecordError, data: bytes, annotate: bool) -> NoReturn:
    """Shows where the batch is wrong, and exits."""
    from kohort.cli.hexdump import pointed
    from kohort.protocol.records.batch import HEADER_SIZE, read_header

    at = error.position
    if len(data) - at >= HEADER_SIZE:
        header = read_header(data, at)
        if annotate:
            _print_header(data, header, f"Batch at byte {at}: its header")
        at += _fault_at(data, header)
    print_lines(pointed(data, at, error.reason), err)
    fail(str(error), 1)


def _fault_at(data: bytes, header: BatchHeader) -> int:
    """The offset in a batch of the field at fault, if it is known; else 0."""
    from kohort.protocol.records.batch import CRC_AT, HEADER_SIZE, LENGTH_AT, MAGIC, MAGIC_AT, checksum

    if header.magic != MAGIC:
        return MAGIC_AT
    if header.size < HEADER_SIZE or header.end > len(data):
        return LENGTH_AT
    return CRC_AT if checksum(data, header) != header.crc else 0
