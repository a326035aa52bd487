"""Windows with a grace, record by record: what the pipeline has to come to, whatever its epochs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence

MINUTE = 60_000
START = 1_357_016_400_000  # 2013-01-01T05:00:00Z
SIZE, SLIDE, GRACE = 10 * MINUTE, 4 * MINUTE, 5 * MINUTE


def walk(seed: str, keys: Sequence[str], length: int = 60) -> list[tuple[str, int]]:
    """Records (key, time) of one partition, in the order of their offsets; some go back in time."""
    draw = random.Random(seed)
    now, records = START, []
    for _ in range(length):
        now += draw.randrange(4 * MINUTE)
        back = draw.choice((0, 0, 10, 40))
        records.append((draw.choice(keys), now - draw.randrange(back + 1) * MINUTE))
    return records


def stream_times(times: Iterable[int | None], before: int | None = None) -> list[int | None]:
    """The greatest time so far at each record, its own included."""
    found = []
    for time in times:
        if time is not None and (before is None or time > before):
            before = time
        found.append(before)
    return found


def windows_at(time: int, size: int, slide: int) -> list[int]:
    """The starts of the windows that a time is in."""
    return list(range(time - time % slide, time - size, -slide))


def counted(
    records: Sequence[tuple[str, int]], size: int, slide: int, grace: int
) -> tuple[Counter[tuple[str, int]], int]:
    """Of the records (key, time) of one partition: how many each key's window has, and how many came late."""
    counts: Counter[tuple[str, int]] = Counter()
    late = 0
    for (key, time), now in zip(records, stream_times(time for _, time in records), strict=True):
        assert now is not None
        for start in windows_at(time, size, slide):
            if start + size + grace <= now:
                late += 1
            else:
                counts[key, start] += 1
    return counts, late
