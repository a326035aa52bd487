"""Makes batches.json: record batches written by Apache Kafka's own classes, one for each compression.

    python -m tests.protocol.vectors.make_batches 'jars/*' > tests/protocol/vectors/batches.json

The argument is a Java class path with kafka-clients (4.2.0), lz4-java, snappy-java, zstd-jni and slf4j-api. On the way
it has Kafka read batches that were encoded here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from kohort.protocol.records.batch import Compression
from kohort.protocol.records.columns import decode_columns, encode_columns


def as_kafka_prints(data: bytes) -> str:
    """The batches of `data` in the form that BatchesFromKafka.java prints."""
    decoded = decode_columns(data)
    rows = decoded.records.to_pylist()
    out = []
    for header, first, last in zip(decoded.batches, decoded.rows, decoded.rows[1:], strict=False):
        facts = [
            header.base_offset, header.last_offset, header.max_timestamp, header.producer_id, header.producer_epoch,
            header.base_sequence, str(header.transactional).lower(), Compression(header.compression).name.lower(),
        ]  # fmt: skip
        out.append("batch " + " ".join(map(str, facts)) + ";")
        for row in rows[first:last]:
            words = [row["offset"], round(row["timestamp"].timestamp() * 1000), hexed(row["key"]), hexed(row["value"])]
            words += [f"{header['key']}={hexed(header['value'])}" for header in row["headers"]]
            out.append(" ".join(map(str, words)) + ";")
    return "".join(out)


def hexed(value: bytes | None) -> str:
    return "null" if value is None else value.hex()


def sample(rows: int) -> pa.Table:
    """Records with null and empty keys and values, headers, and timestamps that don't ascend."""
    return pa.table(
        {
            "key": [None if i % 4 == 0 else f"k{i}".encode() for i in range(rows)],
            "value": [None if i % 9 == 0 else b"v" * (i * 7 % 900) for i in range(rows)],
            "timestamp": pa.array([1_700_000_000_000 + i * 37 % 5000 for i in range(rows)]),
            "headers": pa.array(
                [
                    [{"key": "é", "value": None}, {"key": "b", "value": b"\1"}] if i % 5 == 0 else []
                    for i in range(rows)
                ],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )


def main(class_path: str) -> None:
    ours = [
        b"".join(
            encode_columns(
                sample(400), batch_size=64_000, compression=codec, base_offset=5, producer_id=1, producer_epoch=2,
                base_sequence=2**31 - 100, transactional=True,
            )
        )
        for codec in Compression
    ]  # fmt: skip
    source = Path(__file__).with_name("BatchesFromKafka.java")
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-cp", class_path, "-d", classes, source], check=True)

        def kafka(*lines: str) -> list[str]:
            command = ["java", "-cp", f"{classes}:{class_path}", "BatchesFromKafka"]
            done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
            return done.stdout.splitlines()

        for data, read in zip(ours, kafka(*(f"read {data.hex()}" for data in ours)), strict=True):
            assert read == as_kafka_prints(data), (read[:300], as_kafka_prints(data)[:300])
        written = kafka(*(f"write {codec.name.lower()}" for codec in Compression))
        printed = kafka(*(f"read {text}" for text in written))
    vectors = [
        {"compression": codec.name.lower(), "hex": text, "records": records}
        for codec, text, records in zip(Compression, written, printed, strict=True)
    ]
    print(json.dumps(vectors, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1])
