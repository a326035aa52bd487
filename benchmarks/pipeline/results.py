"""What comes out of the flights, and where it isn't what a batch makes of them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from benchmarks.pipeline.flights import Expected, Group
from benchmarks.pipeline.watcher import Watcher

RANK_ERROR = 0.03
"""How far from 0.9 the rank of a p90 may be, with the sketches that are used."""


class Result(msgspec.Struct, frozen=True):
    """A record of the results; `p90` if the program has it."""

    origin: str
    window: str
    n: int
    mean: float
    worst: float
    p90: float | None = None


class Results(Watcher[Mapping[Group, Expected]]):
    """Reads the results' topic.

    Attributes:
        latest: by group.
        arrivals: by group: when (s since 1970) its results came, and how many flights they told of.
    """

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        super().__init__(servers, topic, partitions)
        self.latest: dict[Group, Result] = {}
        self.arrivals: dict[Group, list[tuple[float, int]]] = defaultdict(list)
        self._decoder = msgspec.json.Decoder(Result)

    def take(self, values: Sequence[bytes]) -> None:
        """Take results, in the order in which they were read."""
        now = time.time()
        for result in map(self._decoder.decode, values):
            group = (result.origin, result.window)
            before = self.latest.get(group)
            self.latest[group] = result
            self.counted += result.n - (before.n if before else 0)
            self.arrivals[group].append((now, result.n))

    def differences(self, expected: Mapping[Group, Expected]) -> list[str]:
        """Where the results aren't what a batch makes of the same flights."""
        found = [f"{group} is missing" for group in expected.keys() - self.latest.keys()]
        found += [f"{group} is too many" for group in self.latest.keys() - expected.keys()]
        for group in expected.keys() & self.latest.keys():
            ours, wanted = self.latest[group], expected[group]
            if (ours.n, ours.worst) != (wanted.n, wanted.worst) or abs(ours.mean - wanted.mean) > 1e-9 * wanted.n:
                found.append(f"{group}: {ours}, not n={wanted.n}, mean={wanted.mean}, worst={wanted.worst}")
            elif ours.p90 is not None:
                below, up_to = wanted.rank(ours.p90)
                # A group of few has no value of just that rank.
                slack = RANK_ERROR + 1 / wanted.n
                if not below - slack <= 0.9 <= up_to + slack:
                    found.append(f"{group}: p90={ours.p90} has ranks {below:.3f} to {up_to:.3f}")
        return found

    def latencies(self, sent: Mapping[Group, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """When flights were sent, and how long it took until a result told of them (s); infinity: none did.

        The i-th flight of a group is told of when its result says n ≥ i.

        Args:
            sent: by group: when its flights were sent, in s since 1970, in order.
        """
        moments, taken = [], []
        for group, times in sent.items():
            arrivals = self.arrivals.get(group, [])
            came = np.array([at for at, _ in arrivals] + [np.inf])
            counts = np.maximum.accumulate(np.array([n for _, n in arrivals] + [np.iinfo(np.int64).max]))
            first = np.searchsorted(counts, np.arange(1, len(times) + 1))
            moments.append(times)
            taken.append(came[first] - times)
        return np.concatenate(moments), np.concatenate(taken)
