"""Rows of a key that are near in time, for many keys at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kohort.spark.jobs.processors.ordering import counted, distinct_pairs
from kohort.spark.jobs.processors.states import State, at_time
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS

_Ints = npt.NDArray[np.int64]


class Spans(NamedTuple):
    """Groups, by number, and times (ms) between which rows of theirs are wanted."""

    groups: _Ints
    least: _Ints
    most: _Ints


class KeptAndNew(NamedTuple):
    """Rows that were kept, then new ones.

    Attributes:
        rows: the columns that are kept.
        groups: by number.
        arrived: which of the epoch's rows each is; -1 for those that were kept.
    """

    rows: pa.Table
    groups: _Ints
    arrived: _Ints


def kept_and_new(state: State, keys: pa.Array, near: Spans, rows: pa.Table, groups: _Ints, new: _Ints) -> KeptAndNew:
    """The rows in the buckets of some spans, and some of an epoch's.

    Args:
        state: lists of rows, by group and bucket.
        keys: of the groups.
        rows: of the epoch, with all columns that are kept.
        groups: of the new ones, as numbers of `keys`.
        new: which rows are.
    """
    wanted, starts = buckets(*near, state.bucket_ms)
    kept = state.lists(at_time(keys.take(pa.array(wanted)), pa.array(starts)))
    mine = rows.select(state.columns.names).cast(kept.rows.schema).take(pa.array(new))
    return KeptAndNew(
        pa.concat_tables([kept.rows, mine]).combine_chunks(),
        np.concatenate([wanted[kept.groups], groups]),
        np.concatenate([np.full(len(kept.groups), -1, np.int64), new]),
    )


def buckets(codes: _Ints, least: _Ints, most: _Ints, bucket_ms: int) -> tuple[_Ints, _Ints]:
    """The buckets between two times (ms), each once for each group: the groups, and the buckets' starts."""
    first, last = least // bucket_ms, most // bucket_ms
    count = last - first + 1
    starts, groups = distinct_pairs(np.repeat(first, count) + counted(count), np.repeat(codes, count))
    return groups, np.clip(starts * bucket_ms, FIRST_MS, LAST_MS)


def rows_between(
    keys: _Ints, times: _Ints, wanted: _Ints, least: _Ints, most: _Ints
) -> tuple[_Ints, _Ints, npt.NDArray[np.intp]]:
    """For each wanted key the rows with it whose times lie between: where they begin in the order, and how many.

    Takes O((n + m) log (n + m)).
    """
    # Times as their ranks, so that a key and a time fit into one number.
    ranks = np.unique(np.concatenate([times, least, most]))
    base = np.int64(len(ranks) + 1)
    places = keys * base + np.searchsorted(ranks, times)
    order = np.argsort(places, kind="stable")
    places = places[order]
    first = np.searchsorted(places, wanted * base + np.searchsorted(ranks, least), "left")
    after = np.searchsorted(places, wanted * base + np.searchsorted(ranks, most), "right")
    return first, after - first, order
