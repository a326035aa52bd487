"""What was measured, as a table: a column a library, the aim beside it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

KOHORT, CONFLUENT, AIOKAFKA = "kohort", "confluent", "aio_kafka"
TITLES = {KOHORT: "Kohort", CONFLUENT: "confluent-kafka", AIOKAFKA: "aiokafka"}


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        key: what its figures are noted under.
        title, unit, digits: how it is shown.
        peer: whom Kohort's own shall beat; None if that isn't aimed at.
        more_is_better: which way that is.
    """

    key: str
    title: str
    unit: str
    digits: int = 0
    peer: str | None = None
    more_is_better: bool = True


def load_rows(work: str, title: str, size: int, peer: str) -> list[Row]:
    """Throughput, and what it costs."""
    key = f"{work} {size}"
    return [
        Row(key, f"{title}, {'1 KiB' if size == 1024 else f'{size} B'}", "records/s", peer=peer),
        Row(f"{key} cpu", "  processor time", "µs/record", 2, more_is_better=False),
    ]


WORKS = {
    "produce": ("produce one by one", AIOKAFKA),
    "produce_batch": ("produce by batch", CONFLUENT),
    "consume": ("consume one by one", AIOKAFKA),
    "consume_batch": ("consume by batch", CONFLUENT),
}
"""Loads: what they are called, and whom Kohort shall beat."""

SIZES = (100, 1024)

ROWS = [
    *(row for work, (title, peer) in WORKS.items() for size in SIZES for row in load_rows(work, title, size, peer)),
    Row("first_record", "from subscribe to the first record", "s", 3, more_is_better=False),
    Row("first_record process", "  from the start of the process", "s", 3, more_is_better=False),
    Row("idle", "{members} idle members of a group", "% of a core", 2, more_is_better=False),
]


class Figures:
    """Figures by row and library, one a round.

    Args:
        members: how many idle.
    """

    def __init__(self, members: int) -> None:
        self._members = members
        self._noted: dict[tuple[str, str], list[float]] = defaultdict(list)

    def note(self, key: str, library: str, figure: float) -> None:
        """Keep one."""
        self._noted[key, library].append(figure)

    def table(self, title: str, libraries: Sequence[str]) -> Table:
        """Medians, and what is aimed at."""
        shown = Table(title=title)
        shown.add_column("")
        for library in libraries:
            shown.add_column(TITLES[library], justify="right")
        shown.add_column("aim", justify="right")
        shown.add_column("")
        for row in ROWS:
            cells = [self._median(row.key, library) for library in libraries]
            if any(cell is not None for cell in cells):
                texts = ["" if cell is None else f"{cell:,.{row.digits}f} {row.unit}" for cell in cells]
                shown.add_row(row.title.format(members=self._members), *texts, *self._verdict(row))
        return shown

    def medians(self) -> dict[str, dict[str, float]]:
        """All of them, by measure and by the library's title."""
        found: dict[str, dict[str, float]] = {}
        for (key, library), figures in self._noted.items():
            found.setdefault(key, {})[TITLES[library]] = statistics.median(figures)
        return found

    def _median(self, key: str, library: str) -> float | None:
        found = self._noted.get((key, library))
        return statistics.median(found) if found else None

    def _verdict(self, row: Row) -> tuple[str, str]:
        if row.peer is None:
            return "", ""
        ours, theirs = self._median(row.key, KOHORT), self._median(row.key, row.peer)
        if ours is None or theirs is None:
            return "", ""
        met = ours > theirs if row.more_is_better else ours < theirs
        return f"> {TITLES[row.peer]}: {ours / theirs:.2f} ×", "[green]met[/]" if met else "[red]missed[/]"
