"""What both are given, and what they say of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

COLUMNS = "key STRING, n BIGINT"
FIRST = 2
"""Epochs that aren't counted: they start workers and compile code."""


def epoch(keys: int, number: int) -> pa.Table:
    """The rows of an epoch: one of each key."""
    names = np.char.add("key-", np.arange(keys).astype(str))
    return pa.table({"key": pa.array(names.tolist()), "n": pa.array(np.arange(keys, dtype=np.int64) % 97 + number)})


def expected(keys: int, epochs: int) -> int:
    """All keys' totals together after so many epochs."""
    return sum(int(np.sum(epoch(keys, number)["n"].to_numpy())) for number in range(epochs))


def told(took: Sequence[float], found: Mapping[str, int]) -> None:
    """Prints how long each epoch took (s), and the sum of the totals, for the bench to read."""
    print(json.dumps({"took": list(took), "total": sum(found.values()), "keys": len(found)}))
