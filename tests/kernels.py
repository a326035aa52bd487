"""Compiles what numba compiles, once: else all workers of a first run of the tests would do so at the same time.

python -m tests.kernels
"""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from kohort.protocol.records.columns import RECORD_SCHEMA, decode_columns, encode_columns
from kohort.protocol.records.compression import Compression
from kohort.protocol.records.partitioner import partitions_of
from kohort.spark.formats import decoder, encoder
from kohort.spark.formats.times import TimeFormats
from kohort.spark.jobs import kll_sketches
from kohort.spark.state import row_cache

KINDS = (T.StringType(), T.DoubleType(), T.TimestampType(), T.DateType(), T.BooleanType(), T.LongType())
ROW = ("\n", 1.5, "2013-01-01T05:00:00.5Z", "2013-01-01", True, 1)


def formats() -> None:
    """Those that read values."""
    schema = T.StructType([T.StructField(kind.typeName(), kind) for kind in KINDS])
    text = json.dumps(dict(zip(schema.names, ROW, strict=True))).encode()
    found = decoder("json", schema).decode(pa.array([text, None], pa.binary())).columns
    decoder("json", schema).decode(pa.array(['{"string":"é"}'.encode()], pa.binary()))
    for pattern in ("yyyy-MM-dd", ""):
        times = TimeFormats((("", pattern),), "Europe/Berlin")
        decoder("json", schema, times=times).decode(pa.array([text], pa.binary()))
    for kind in ("json", "avro"):
        decoder(kind, schema).decode(encoder(kind, schema).encode(found))


def records() -> None:
    """Those of record batches: for arrays that can be written and for those that can't, of keys and of values."""
    loose = pa.array([b"x", b"y"], pa.binary())
    fixed = pa.BinaryArray.from_buffers(pa.binary(), 2, [None, *map(fixed_buffer, loose.buffers()[1:])])
    headers = pa.array([[("h", b"x")], []], RECORD_SCHEMA.field("headers").type)
    for key in (loose, fixed):
        for value in (loose, fixed):
            columns = pa.table({"key": key, "value": value, "headers": headers})
            for compression in (Compression.NONE, Compression.LZ4):
                for batch in encode_columns(columns, compression=compression):
                    decode_columns(bytes(batch))
                    decode_columns(bytearray(batch))
        partitions_of(key, 3)
        partitions_of(key, 3, "crc32")


def state() -> None:
    """Those of stores."""
    row_cache.load()


def sketches() -> None:
    """Those of quantiles."""
    kll_sketches.load()


def fixed_buffer(buffer: pa.Buffer) -> pa.Buffer:
    """The same bytes, not to be changed."""
    return pa.py_buffer(buffer.to_pybytes())


def main() -> None:
    with ProcessPoolExecutor(2) as pool:
        for done in [pool.submit(formats), pool.submit(sketches), pool.submit(records), pool.submit(state)]:
            done.result()


if __name__ == "__main__":
    main()
