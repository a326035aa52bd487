"""Comparison of the stream's result with the batch job's."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

KEYS: Final[dict[str, tuple[str, ...]]] = {"delays-by-hour": ("window", "origin"), "delays-by-sky": ("name", "sky")}
"""The topics that the program writes, and the key columns of their groups."""

Groups = dict[tuple[str, ...], dict[str, Any]]
"""The groups of a topic: their columns by key."""

_CLOSE: Final = 1e-9
"""Relative tolerance of floating-point sums, which depend on the order of addition."""


def batch_groups(result: Path) -> dict[str, Groups]:
    found: dict[str, Groups] = {topic: {} for topic in KEYS}
    with result.open() as lines:
        for line in lines:
            row = json.loads(line)
            topic = row.pop("topic")
            found[topic][tuple(str(row[name]) for name in KEYS[topic])] = row
    return found


def differences(stream: Mapping[str, Groups], batch: Mapping[str, Groups]) -> list[str]:
    found = []
    for topic, expected in batch.items():
        got = stream.get(topic, {})
        for key in sorted({*expected, *got}):
            name = f"{topic}, {' '.join(key)}"
            if key not in got:
                found.append(f"{name}: the stream lacks it")
            elif key not in expected:
                found.append(f"{name}: the batch job lacks it")
            else:
                found += [f"{name}: {each}" for each in _columns(got[key], expected[key])]
    return found


def _columns(stream: Mapping[str, Any], batch: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} is {stream.get(name)!r} in the stream, {batch.get(name)!r} in the batch"
        for name in sorted({*stream, *batch})
        if not _equal(stream.get(name), batch.get(name))
    ]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(one == other)
