"""What is measured of groups, in which unit, and what Kohort aims at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.broker.measures import Measure


@dataclass(frozen=True)
class Shared:
    """One way to consume as a share group.

    Attributes:
        library: a key of `LIBRARIES`.
        mode: implicit; explicit, with Kohort's by lists of records; "one by one", its explicit mode record by record;
            batches, which are accepted implicitly.
        aim: times Apache Kafka's rate, or None.
    """

    library: str
    members: int
    mode: str
    aim: float | None = 1.0

    @property
    def key(self) -> str:
        """What its rate is noted under; with " server", the processor time the server needs for a record."""
        return f"{self.library}, {self.members} members, {self.mode}"

    @property
    def title(self) -> str:
        """Its row's."""
        members = "1 member" if self.members == 1 else f"{self.members} members"
        return f"{LIBRARIES[self.library]}, {members}, {self.mode}"


LIBRARIES: Final = {"java": "Java", "librdkafka": "librdkafka (Python)", "kohort": "Kohort's ShareConsumer"}
SHARES: Final = [
    *(
        Shared(library, members, mode)
        for library in ("java", "librdkafka")
        for members in (1, 4)
        for mode in ("implicit", "explicit")
    ),
    *(Shared("kohort", 1, mode, aim=None) for mode in ("implicit", "explicit", "one by one", "batches")),
]
JOINERS: Final = ("java", "librdkafka")
MEMORY: Final = {
    "before": "before a share group",
    "locked": "locked all at once",
    "released": "released again",
    "scattered": "locked again, each second one accepted, the others released",
}


def measures(many: int, in_flight: int) -> list[Measure]:
    """All rows; `many` members join at once, and so many records are in flight."""
    return [*_joins(many), *_shares(), *_memory(in_flight)]


def _joins(many: int) -> list[Measure]:
    found = []
    for library in JOINERS:
        for key, title in _joining(many).items():
            found.append(Measure(f"{library} {key}", f"{LIBRARIES[library]}, {title}", "s", 2, more_is_better=False))
    return found


def _joining(many: int) -> Mapping[str, str]:
    return {
        "third": "a third joins two that just did, until stable",
        "rested": "a third joins two at rest for 8 s, until stable",
        "three": "3 join at once, until stable",
        "many": f"{many} join at once, until stable",
    }


def _shares() -> list[Measure]:
    found = []
    for shared in SHARES:
        found.append(Measure(shared.key, f"shared: {shared.title}", "records/s", times=shared.aim))
        found.append(Measure(f"{shared.key} server", "  the server's time for a record", "µs", 2, more_is_better=False))
    return found


def _memory(in_flight: int) -> list[Measure]:
    return [
        Measure(f"memory {key}", f"memory, {in_flight:,} records {what}", "MiB", more_is_better=False)
        for key, what in MEMORY.items()
    ]
