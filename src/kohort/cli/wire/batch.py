"""`kohort wire batch`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.bytes_input import read_bytes
from kohort.cli.terminal import err, fail, out

if TYPE_CHECKING:
    from kohort.protocol.records.batch import BatchHeader
    from kohort.protocol.records.trace import TracedBatch, TracedRecord


def batch(
    source: Annotated[
        str, typer.Argument(metavar="FILE|-|HEX", help="Batches: a log segment, standard input, or hex digits.")
    ],
    annotate: Annotated[bool, typer.Option("--annotate", help="Print hexdumps, each field labelled.")] = False,
    headers_only: Annotated[bool, typer.Option("--headers", help="Leave the records out.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, help="Bytes that one batch may expand to when it is decompressed.")
    ] = 256 * 1024 * 1024,
) -> None:
    """Show record batches: headers and records, checked, as JSON or as labelled hexdumps.

    kohort wire batch /var/lib/kafka/orders-0/00000000000000000000.log --headers
    """
    from kohort.protocol.errors import CorruptRecordError
    from kohort.protocol.records.batch import check_batch

    data = read_bytes(source)
    position = 0
    first = True
    try:
        while position < len(data):
            header = check_batch(data, position)
            if annotate:
                _print_dump(data, header, headers_only, limit)
            else:
                typer.echo(("[" if first else ",") + "\n" + _as_json(data, header, headers_only, limit), nl=False)
            first = False
            position = header.end
    except CorruptRecordError as error:
        if not annotate:
            typer.echo("[]" if first else "\n]")
        _refuse(error, data)
    if not annotate:
        typer.echo("[]" if first else "\n]")


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
        traced = trace_batch(data, header.position, limit)
        shown["Records"] = [_record(record, header.control) for record in traced.records]
    return json.dumps(shown, indent=2, ensure_ascii=False)


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
    return {name: text} if text.isprintable() else {f"{name}Hex": raw.hex()}


def _print_dump(data: bytes, header: BatchHeader, headers_only: bool, limit: int) -> None:
    from kohort.cli.hexdump import joined, labelled
    from kohort.protocol.records.batch import HEADER_SIZE, Compression
    from kohort.protocol.records.trace import trace_batch

    traced: TracedBatch = trace_batch(data, header.position, limit)
    compression = Compression(header.compression).name.lower()
    out.print(f"Batch at byte {header.position}: {header.record_count} records, {compression}", style="bold")
    raw = data[header.position : header.end]
    spans = [span for span in traced.spans if span.end <= HEADER_SIZE] if headers_only else traced.spans
    out.print(joined(labelled(raw, spans, header.position)), soft_wrap=True)
    if traced.payload_spans and not headers_only:
        out.print(f"Its records, decompressed: {len(traced.payload)} bytes", style="bold")
        out.print(joined(labelled(traced.payload, traced.payload_spans)), soft_wrap=True)


def _refuse(error: Exception, data: bytes) -> None:
    from kohort.cli.hexdump import joined, pointed
    from kohort.protocol.errors import CorruptRecordError

    assert isinstance(error, CorruptRecordError)
    err.print(joined(pointed(data, error.position, error.reason)), soft_wrap=True)
    fail(str(error), 1)
