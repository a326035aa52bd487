"""Rows of a key that are near in time, for many keys at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohort.spark.jobs.processors.ordering import counted
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS

_Ints = npt.NDArray[np.int64]


def buckets(codes: _Ints, least: _Ints, most: _Ints, bucket_ms: int) -> tuple[_Ints, _Ints]:
    """The buckets between two times (ms), each once for each group: the groups, and the buckets' starts."""
    first, last = least // bucket_ms, most // bucket_ms
    count = last - first + 1
    pairs = np.stack([np.repeat(first, count) + counted(count), np.repeat(codes, count)])
    found = np.unique(pairs, axis=1)
    starts = np.clip(found[0] * bucket_ms, FIRST_MS, LAST_MS)
    return found[1], starts


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
