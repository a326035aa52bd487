"""Finds misplaced records: those that lie in another partition than their key's columns lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.protocol.records.partitioner import Partitioner, partitions_of
from kohort.spark.jobs.arrow_key_encoding import key_texts
from kohort.spark.jobs.stages.fetched_records import FetchedRecords

_SHOWN: Final = 100
"""Characters of a key in a message."""


@dataclass(frozen=True)
class PartitionCheck:
    """Which partition a topic's records belong to.

    Attributes:
        key: the columns by whose text (`Route.TEXT`) they are partitioned.
        partitioner: how.
        table: whether they are a joined table's.
        plain_decimals: see `key_texts`.
    """

    key: tuple[str, ...]
    partitioner: Partitioner
    table: bool
    plain_decimals: bool


def has_key(fetched: FetchedRecords, partitioner: Partitioner) -> pa.Array:
    """Which records have a key that says where they belong. librdkafka spreads those with an empty one, too."""
    keys = fetched.keys
    if partitioner == "murmur2":
        return keys.is_valid()
    return pc.fill_null(pc.greater(pc.binary_length(keys), 0), False)


def misplaced(
    check: PartitionCheck,
    columns: Mapping[str, pa.Array],
    fetched: FetchedRecords,
    keyed: pa.Array,
    partitions: int,
    reported: slice,
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The rows that lie elsewhere than they belong, and what is wrong with those of them that are `reported`.

    Args:
        columns: of the records, by name; those of the key are among them.
        keyed: which of them have a key (`has_key`); the others may lie anywhere.
        partitions: how many the topic has.
        reported: a slice of the misplaced rows.
    """
    texts = key_texts(check.key, [columns[name] for name in check.key], plain_decimals=check.plain_decimals)
    # Rows without a text are a group like others; a table doesn't take them.
    keys = pc.if_else(keyed, texts if check.table else pc.fill_null(texts, ""), None)
    found = fetched.partitions.to_numpy(zero_copy_only=False)
    expected = partitions_of(keys, partitions, check.partitioner)
    rows = np.flatnonzero((expected != found) & (expected >= 0))
    if not len(rows[reported]):
        return rows, []
    other: Partitioner = "crc32" if check.partitioner == "murmur2" else "murmur2"
    others = partitions_of(keys, partitions, other)
    remedy = _remedy(check, other if ((others == found) | (others < 0)).all() else None)
    some = pa.array(rows[reported])
    shown = texts.take(some).cast(pa.binary()).to_pylist()
    written = fetched.keys.take(some).to_pylist()
    return rows, [
        f"{_shown(check.key, text)} belongs into partition {expected[row]} of {partitions} by {check.partitioner}, "
        f"but the record, whose key is {_short(key)!r}, lies in {found[row]}, so several tasks would have that group. "
        f"{remedy}"
        for row, text, key in zip(rows[reported], shown, written, strict=True)
    ]


def _shown(key: tuple[str, ...], written: bytes | None) -> str:
    if written is None:
        return f"{key[0]} = null"
    return f"{key[0]} = {_short(written)!r}" if len(key) == 1 else _short(written)


def _short(written: bytes) -> str:
    text = written.decode(errors="replace")  # a key may be anything
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _remedy(check: PartitionCheck, other: Partitioner | None) -> str:
    names = ", ".join(f'"{name}"' for name in check.key)
    if check.table:
        what = "Write the topic with keys of these columns, or make the table an app.global_table"
    else:
        what = f"Say .repartition({names}) before group_by or join, which goes by the columns"
    if other is None:
        return what
    writer = "librdkafka's default" if other == "crc32" else "as Kafka's Java client"
    made = "table" if check.table else "stream"
    return (
        f'partitioner="{other}" fits here ({writer}): say it where the {made} is made. Or {what[0].lower()}{what[1:]}'
    )
