"""What a measurement has found, as a table and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.console import RenderableType

from kohort.cli.client.tables import table
from kohort.cli.data.progress import in_words
from kohort.cli.measuring.latencies import Latencies


@dataclass
class Outcome:
    """What was measured, also of a measurement that was stopped.

    Attributes:
        what: produce, consume or e2e.
        topic: that it was measured with.
        records, bytes: that were acknowledged, or read; bytes of keys and values.
        seconds: from the first record's departure to the last one's arrival.
        latencies: of records; none where they have no beginning.
        first_s: seconds until the first records came; None if none did, or it isn't measured.
        lost: records that weren't delivered, or didn't come.
        interrupted: whether it was stopped before it was done.
        problem: why it ended otherwise; None if it didn't.
    """

    what: str
    topic: str
    records: int = 0
    bytes: int = 0
    seconds: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)
    first_s: float | None = None
    lost: int = 0
    interrupted: bool = False
    problem: str | None = None

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def byte_rate(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "measured": self.what,
            "topic": self.topic,
            "records": self.records,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 6),
            "records_per_second": round(self.rate, 3),
            "bytes_per_second": round(self.byte_rate, 3),
            "latency_ms": self.latencies.as_json(),
            "first_record_ms": None if self.first_s is None else round(self.first_s * 1000, 3),
            "lost": self.lost,
            "interrupted": self.interrupted,
        }

    def as_table(self) -> RenderableType:
        rows = [
            ("records", f"{self.records:,}"),
            ("bytes", in_words(self.bytes)),
            ("time", f"{self.seconds:,.2f} s"),
            ("throughput", f"{self.rate:,.0f} records/s, {in_words(self.byte_rate)}/s"),
        ]
        if self.first_s is not None:
            rows.append(("first records", f"after {self.first_s * 1000:,.1f} ms"))
        if (found := self.latencies.as_json()) is not None:
            rows += [(f"latency, {name.replace('p999', 'p99.9')}", f"{ms:,.2f} ms") for name, ms in found.items()]
        if self.interrupted:
            rows.append(("stopped", "before it was done"))
        if self.lost:
            rows.append(("lost", f"{self.lost:,}"))
        return table(("Measured", f">{self.what}"), rows)
