"""The wire beside its peers, in one run: messages beside kio, record batches beside aiokafka's compiled parser.

    make bench-wire
    python benchmarks/wire.py --quick

Every figure is the median of repeated runs, ours and the peer's in turn, so that a noisy machine disturbs both alike.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import random
import statistics
import time
import timeit
import uuid
from collections.abc import Callable
from functools import partial

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from rich.console import Console
from rich.table import Table

from kohort.protocol.message import Kind, Message
from kohort.protocol.messages.fetch import FetchResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse, TaskIds
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.columns import decode_columns, encode_columns

TARGET_SECONDS = 0.02
"""How long one measurement lasts."""

DRAW = random.Random(1)


def messages() -> list[tuple[str, Message, int]]:
    return [
        ("Heartbeat v4", HeartbeatRequest(group_id="orders", generation_id=7, member_id=member_id()), 4),
        ("StreamsGroupHeartbeat v0, 10 tasks", streams_heartbeat(10), 0),
        ("StreamsGroupHeartbeat v0, 1,000 tasks", streams_heartbeat(1000), 0),
        ("Metadata v12, 100 topics × 6 partitions", metadata(100, 6), 12),
        ("Fetch v17 without records, 10 topics × 10", fetch(10, 10), 17),
        ("JoinGroup v9, 100 members", join_group(100), 9),
    ]


def member_id() -> str:
    return f"consumer-orders-1-{uuid.UUID(int=DRAW.getrandbits(128))}"


def streams_heartbeat(tasks: int) -> StreamsGroupHeartbeatResponse:
    """Active, standby and warm-up tasks over five subtopologies."""

    def some(number: int) -> list[TaskIds]:
        return [
            TaskIds(subtopology_id=str(part), partitions=tuple(range(part, number, 5)))
            for part in range(5)
            if part < number
        ]

    active, standby = some(tasks * 6 // 10), some(tasks * 3 // 10)
    warmup = some(tasks - tasks * 6 // 10 - tasks * 3 // 10)
    return StreamsGroupHeartbeatResponse(
        member_id=member_id(), member_epoch=12, heartbeat_interval_ms=5000, acceptable_recovery_lag_v0=10000,
        task_offset_interval_ms=60000, active_tasks=active, standby_tasks=standby, warmup_tasks=warmup,
    )  # fmt: skip


def metadata(topics: int, partitions: int) -> MetadataResponse:
    topic, broker = MetadataResponse.Topic, MetadataResponse.Broker
    return MetadataResponse(
        brokers=[broker(node_id=node, host=f"broker-{node}.kafka.local", port=9092) for node in range(3)],
        cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        controller_id=0,
        topics=[
            topic(
                name=f"topic-{number}",
                topic_id=uuid.UUID(int=DRAW.getrandbits(128)),
                partitions=[
                    topic.Partition(
                        partition_index=index, leader_id=index % 3, leader_epoch=4, replica_nodes=(0, 1, 2),
                        isr_nodes=(0, 1, 2),
                    )
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ],
    )  # fmt: skip


def fetch(topics: int, partitions: int) -> FetchResponse:
    topic = FetchResponse.TopicResponse
    return FetchResponse(
        session_id=7,
        responses=[
            topic(
                topic_id=uuid.UUID(int=DRAW.getrandbits(128)),
                partitions=[
                    topic.Partition(partition_index=index, high_watermark=10_000, last_stable_offset=9_000,
                                    log_start_offset=5, records=b"")
                    for index in range(partitions)
                ],
            )
            for _ in range(topics)
        ],
    )  # fmt: skip


def join_group(members: int) -> JoinGroupResponse:
    ids = [member_id() for _ in range(members)]
    return JoinGroupResponse(
        generation_id=7,
        protocol_type="consumer",
        protocol_name="cooperative-sticky",
        leader=ids[0],
        member_id=ids[0],
        members=[JoinGroupResponse.Member(member_id=name, metadata=DRAW.randbytes(60)) for name in ids],
    )


def median_seconds(rounds: int, *functions: Callable[[], object]) -> list[float]:
    """The median time of one call of each, measured in turns."""
    repeats = []
    for function in functions:
        function()
        start = time.perf_counter()
        function()
        repeats.append(max(1, int(TARGET_SECONDS / max(1e-9, time.perf_counter() - start))))
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for function, repeat, taken in zip(functions, repeats, times, strict=True):
            gc.collect()
            start = time.perf_counter()
            for _ in range(repeat):
                function()
            taken.append((time.perf_counter() - start) / repeat)
    return [statistics.median(taken) for taken in times]


def kio_functions(message: Message, version: int, encoded: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    spec = message.__message__
    kind = EntityType.request if spec.kind is Kind.REQUEST else EntityType.response
    entity = getattr(load_payload_module(spec.key, version, kind), spec.name)
    read, write = entity_reader(entity), entity_writer(entity)
    theirs, _ = read(encoded, 0)

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, theirs)
        return buffer.getvalue()

    assert encode() == encoded
    return encode, partial(read, encoded, 0)


def message_table(rounds: int) -> Table:
    table = Table(title="Messages: µs a message (median), and how many times as fast as kio")
    for column in ("Message", "Bytes"):
        table.add_column(column, justify="right" if column == "Bytes" else "left")
    for column in ("encode", "kio", "×", "decode", "kio", "×"):
        table.add_column(column, justify="right")
    for name, message, version in messages():
        encoded = message.encode(version)
        assert type(message).decode(encoded, version) == message
        kio_encode, kio_decode = kio_functions(message, version, encoded)
        codec = message.__codecs__[version]
        taken = median_seconds(
            rounds, partial(codec.encode, message), kio_encode, partial(codec.decode, encoded), kio_decode
        )
        micro = [seconds * 1e6 for seconds in taken]
        table.add_row(
            name, f"{len(encoded):,}",
            f"{micro[0]:.2f}", f"{micro[1]:.2f}", f"{micro[1] / micro[0]:.1f}",
            f"{micro[2]:.2f}", f"{micro[3]:.2f}", f"{micro[3] / micro[2]:.2f}",
        )  # fmt: skip
    return table


def bounds_table(rounds: int) -> Table:
    """What decoding a member of a JoinGroup response is made of: each Python step, timed alone."""
    member = JoinGroupResponse.Member
    raw = member(member_id=member_id(), metadata=DRAW.randbytes(60))
    message = JoinGroupResponse(members=[raw] * 1000)
    data = message.encode(9)
    codec = JoinGroupResponse.__codecs__[9]
    steps = {
        "read a byte, step over it": (4, "n = data[pos]; pos += 1"),
        "compare a length": (4, "not 0 < n < 128"),
        "find the end of a content": (2, "end = pos + n - 1; pos = end - n + 1"),
        "cut a string out and decode it": (1, "data[20:74].decode()"),
        "cut bytes out": (1, "data[20:80]"),
        "make the object": (1, "member(None, text, None, blob)"),
        "append it, and go round": (1, "items.append(None)"),
    }
    scope = {"data": data, "pos": 3, "n": 5, "member": member, "text": "", "blob": b"", "items": []}
    table = Table(title="What bounds decoding: a member of JoinGroup v9, step by step (median)")
    table.add_column("Step")
    for column in ("times", "ns each", "ns"):
        table.add_column(column, justify="right")
    empty = statement_seconds(rounds, "pass", scope)
    total = 0.0
    for name, (times, statement) in steps.items():
        cost = (statement_seconds(rounds, statement, scope) - empty) * 1e9
        total += times * cost
        table.add_row(name, str(times), f"{cost:.0f}", f"{times * cost:.0f}")
    (whole,) = median_seconds(rounds, partial(codec.decode, data))
    table.add_section()
    table.add_row("sum of the steps", "", "", f"{total:.0f}")
    table.add_row("measured, a member of 1,000", "", "", f"{whole * 1e6:.0f}")
    return table


def statement_seconds(rounds: int, statement: str, scope: dict[str, object]) -> float:
    """Seconds that one run of a statement takes, in a loop written out twenty times."""
    timer = timeit.Timer("; ".join([statement] * 20), setup="pos = 3; n = 5", globals=scope)
    return statistics.median(timer.repeat(rounds, 5000)) / 5000 / 20


def record_table(rounds: int, records: int, value_size: int = 100) -> Table:
    """Values that compress about as JSON does: half random, half repeated."""
    table = Table(
        title=f"Record batches: million records a second on one core (median), {value_size}-byte values, "
        "batches of 1 MB (16 kB in brackets)"
    )
    table.add_column("Compression")
    for column in ("encode columns", "decode columns", "aiokafka append", "aiokafka iterate"):
        table.add_column(column, justify="right")
    values = [os.urandom(value_size // 2) + bytes(value_size - value_size // 2) for _ in range(records)]
    source = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})
    for codec in Compression:
        figures = []
        for size in (1_000_000, 16_384):
            batches = encode_columns(source, batch_size=size, compression=codec)
            data = b"".join(batches)
            theirs = [bytes(batch) for batch in batches]
            taken = median_seconds(
                rounds,
                lambda s=size, c=codec: encode_columns(source, batch_size=s, compression=c),
                lambda d=data: decode_columns(d),
                lambda s=size, c=codec: aiokafka_encode(values, s, c),
                lambda t=theirs: [aiokafka_decode(batch) for batch in t],
            )
            figures.append([f"{records / seconds / 1e6:.2f}" for seconds in taken])
        table.add_row(codec.name.lower(), *(f"{large} ({small})" for large, small in zip(*figures, strict=True)))
    return table


def aiokafka_encode(values: list[bytes], size: int, codec: Compression) -> int:
    batches, index = 0, 0
    while index < len(values):
        builder = DefaultRecordBatchBuilder(2, int(codec), False, -1, -1, -1, size)
        offset = 0
        while index < len(values) and builder.append(offset, 0, None, values[index], []) is not None:
            index += 1
            offset += 1
        builder.build()
        batches += 1
    return batches


def aiokafka_decode(data: bytes) -> int:
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return sum(1 for _ in batch)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/wire.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the records: for CI")
    options = parser.parse_args()
    rounds, records = (1, 10_000) if options.quick else (15, 100_000)
    console = Console(width=None if Console().is_terminal else 140)
    console.print(message_table(rounds))
    console.print(bounds_table(rounds))
    console.print(record_table(rounds, records))


if __name__ == "__main__":
    main()
