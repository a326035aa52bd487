"""Requests and responses of the RPC, as JSON headers of frames."""

from __future__ import annotations

from typing import Final

import msgspec
import pyarrow as pa

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.epoch import Read

LOOKUP_KEYS: Final = pa.schema([pa.field("partition", pa.int32()), pa.field("key", pa.binary())])
"""The body of a `LookupRequest`. A null partition means a global store."""

FETCHED_RECORDS: Final = pa.schema([*RECORD_SCHEMA, pa.field("partition", pa.int32(), nullable=False)])
"""The body of an `InputResponse` where the driver has the topics itself: the records of the ranges, in their order."""

LOOKUP_VALUES: Final = pa.schema([pa.field("value", pa.binary())])
"""The body of its response, in the order of the keys; null where the store has no value.

It may have fewer values than there were keys, but at least one, to limit its size: the rest is requested again.
"""

SCAN_RANGES: Final = pa.schema(
    [pa.field(name, pa.binary()) for name in ("start", "end", "neighbours_from", "neighbours_to")]
)
"""The body of a `ScanRequest`: each range from its start (included) to its end (not included).

`neighbours_from`: from which key on the row before the range is given, too; `neighbours_to`: up to which key (not
included) the one after it; null: it isn't wanted.
"""

SCANNED_ROWS: Final = pa.schema(
    [pa.field("range", pa.int32()), pa.field("key", pa.binary()), pa.field("value", pa.binary())]
)
"""The body of its response: the rows of ranges, by their numbers in the request, each range's in key order."""

STORE_WRITES: Final = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.int64()),
    ]
)
"""The body of a `WritesRequest`: the last row of a key counts, a null value deletes. `timestamp` is in ms."""


class InputRequest(msgspec.Struct, tag="work", frozen=True):
    """Asks what split `split` of `splits` reads.

    Attributes:
        subtopology: its id; "id/table" in an epoch of a table.
        whole_partitions: whether no partition is divided among splits.
        topic: that alone is wanted, where the epoch reads several; "" for all.
    """

    subtopology: str
    split: int
    splits: int
    whole_partitions: bool = False
    topic: str = ""


class InputResponse(msgspec.Struct, tag="input", frozen=True):
    """What a split reads.

    Attributes:
        run: identifies this run of the epoch in reports.
        ranges: topic, partition, start and end.
        stream_times: of all partitions, in ms.
        partitions: as in `kohort.spark.epoch.EpochInput`.
        mergers: likewise; by branch, the topic's partitions and the tasks' stream times (ms).
        secrets: passwords that the executor needs to read, by their names in `ClientConfig`.
        positions: where each of the epoch's tasks reads on, by partition: see `splits.positions_of`.
        now: the epoch's time, in ms since 1970.
        ahead: by partition, what is added to offsets of the topic that was asked for: see `splits.ahead_of`.
    """

    run: int
    ranges: list[tuple[str, int, int, int]]
    stream_times: dict[int, int]
    partitions: int = 0
    mergers: dict[int, tuple[int, dict[int, int | None]]] = {}
    secrets: dict[str, str] = {}
    positions: dict[int, int] = {}
    now: int = 0
    ahead: dict[int, int] = {}


class LookupRequest(msgspec.Struct, tag="lookup", frozen=True):
    """Asks for the values of keys (`LOOKUP_KEYS`) in a store."""

    store: str


class LookupResponse(msgspec.Struct, tag="lookup", frozen=True):
    """The values (`LOOKUP_VALUES`)."""


class ScanRequest(msgspec.Struct, tag="scan", frozen=True):
    """Asks for the rows of ranges (`SCAN_RANGES`) of a store.

    Attributes:
        most_bytes: about how much is wanted; None: as much as fits.
    """

    store: str
    partition: int
    most_bytes: int | None = None


class ScanResponse(msgspec.Struct, tag="scan", frozen=True):
    """The rows (`SCANNED_ROWS`), as many as fit.

    Attributes:
        rest: the range, and the key in it (base64), from which on there are more; None if these are all.
    """

    rest: tuple[int, bytes] | None = None


class WritesRequest(msgspec.Struct, tag="writes", frozen=True):
    """What a stage writes to a store in one task (`STORE_WRITES`), in pieces; one that comes again replaces the first.

    Attributes:
        branch, split: whose, as in `ReportRequest`.
        piece: its number.
    """

    subtopology: str
    run: int
    branch: int
    split: int
    store: str
    piece: int = 0


class KeepRequest(msgspec.Struct, tag="keep", frozen=True):
    """Keeps what a processor has made of a task's rows, for the other branches that go on from it (the body: a batch).

    Attributes:
        processor, partition: which, and of which task.
    """

    subtopology: str
    run: int
    processor: str
    partition: int


class KeptRequest(msgspec.Struct, tag="kept", frozen=True):
    """Asks for what was kept so. The response has no body if there is nothing."""

    subtopology: str
    run: int
    processor: str
    partition: int


class ReportRequest(msgspec.Struct, tag="report", frozen=True):
    """What a stage did in one split of a branch; counts as in `kohort.spark.epoch.EpochStatistics`.

    The body has the records that couldn't be read (`DEAD_SCHEMA`), if any. `read`: how a stage has read its split.
    """

    subtopology: str
    run: int
    branch: int
    split: int
    stage: str
    records: int = 0
    bytes: int = 0
    reasons: dict[str, int] = {}
    late: int = 0
    max_times: dict[int, int] = {}
    read: Read | None = None


class ReportResponse(msgspec.Struct, tag="report", frozen=True):
    """Whether the report, or what was written or kept, was accepted; it isn't if the run is over."""

    accepted: bool


class ErrorResponse(msgspec.Struct, tag="error", frozen=True):
    """The request failed, and why."""

    error: str


Request = InputRequest | LookupRequest | ScanRequest | WritesRequest | KeepRequest | KeptRequest | ReportRequest
Response = InputResponse | LookupResponse | ScanResponse | ReportResponse | ErrorResponse
