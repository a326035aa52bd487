"""The requests of the line and their answers, as JSON headers of frames."""

from __future__ import annotations

from typing import Final

import msgspec
import pyarrow as pa

LOOKUP_KEYS: Final = pa.schema([pa.field("partition", pa.int32()), pa.field("key", pa.binary())])
"""The body of a `LookupRequest`. A null partition asks a global store."""

LOOKUP_VALUES: Final = pa.schema([pa.field("value", pa.binary())])
"""The body of its answer, in the order of the keys; null where a store has nothing.

There may be fewer values than keys, but one at least, so that an answer stays in bounds: the rest is asked for again.
"""


class WorkRequest(msgspec.Struct, tag="work", frozen=True):
    """What is there to read? For split `split` of `splits` of a lane; `whole`: without dividing a partition."""

    lane: str
    split: int
    splits: int
    whole: bool = False


class WorkAnswer(msgspec.Struct, tag="work", frozen=True):
    """The ranges (topic, partition, start, end) of a split, the stream times (ms) of all partitions, and their number.

    `run` names this run of the epoch in reports.
    """

    run: int
    ranges: list[tuple[str, int, int, int]]
    stream_times: dict[int, int]
    partitions: int = 0


class LookupRequest(msgspec.Struct, tag="lookup", frozen=True):
    """Prior values of keys (`LOOKUP_KEYS`) of a store."""

    store: str


class LookupAnswer(msgspec.Struct, tag="lookup", frozen=True):
    """Those values (`LOOKUP_VALUES`)."""


class ReportRequest(msgspec.Struct, tag="report", frozen=True):
    """What a stage did in one split of a branch; counts as in `kohort.spark.jobs.epoch.Read`.

    The body has the records that couldn't be read (`DEAD_SCHEMA`), if any.
    """

    lane: str
    run: int
    branch: int
    split: int
    stage: str
    records: int = 0
    bytes: int = 0
    reasons: dict[str, int] = {}
    late: int = 0
    max_times: dict[int, int] = {}


class ReportAnswer(msgspec.Struct, tag="report", frozen=True):
    """It was noted; or not, if the run is over."""

    noted: bool


class ErrorAnswer(msgspec.Struct, tag="error", frozen=True):
    """It couldn't be done."""

    error: str


Request = WorkRequest | LookupRequest | ReportRequest
Answer = WorkAnswer | LookupAnswer | ReportAnswer | ErrorAnswer
