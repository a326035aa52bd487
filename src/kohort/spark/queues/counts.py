"""What a worker has done of a queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.sharing.acknowledgements import AcknowledgeType
from kohort.client.sharing.shared_partitions import AcknowledgementResult

_NAMES: Final = {
    AcknowledgeType.ACCEPT: "accepted",
    AcknowledgeType.RELEASE: "released",
    AcknowledgeType.REJECT: "rejected",
    AcknowledgeType.RENEW: "renewed",
}


@dataclass
class QueueCounts:
    """Counts of records since the worker began, but for `in_flight`.

    Attributes:
        topic: the queue's.
        acquired: were handed out to this worker.
        accepted, released, rejected: brokers know so.
        renewed: locks that were prolonged, as often as they were.
        lost: acknowledgements that don't count, since the lock had ended: the records are handed out again.
        in_flight: the job works on them now.
        deliveries: those handed out, by which time it was: 1 is the first.
        dead_letters: were written.
        epochs: jobs that were acknowledged.
        failed_jobs: jobs that failed.
        job_s: how long jobs took, in all.
        failure: why nothing came of the latest epoch; None if something did, or there is nothing to do since.
        changed: called after each change.
    """

    topic: str
    acquired: int = 0
    accepted: int = 0
    released: int = 0
    rejected: int = 0
    renewed: int = 0
    lost: int = 0
    in_flight: int = 0
    deliveries: dict[int, int] = field(default_factory=dict)
    dead_letters: int = 0
    epochs: int = 0
    failed_jobs: int = 0
    job_s: float = 0.0
    failure: str | None = None
    changed: Callable[[], object] = field(default=lambda: None, repr=False)

    def handed_out(self, records: pa.Table) -> None:
        """Counts records that were acquired, which have a `delivery_count`."""
        self.acquired += records.num_rows
        for each in pc.value_counts(records.column("delivery_count").combine_chunks()).to_pylist():
            self.deliveries[each["values"]] = self.deliveries.get(each["values"], 0) + each["counts"]

    def acknowledged(self, result: AcknowledgementResult) -> None:
        """Counts what a broker has done about acknowledgements."""
        for each in result.acknowledgements:
            records = each.last - each.first + 1
            if result.error is None:
                name = _NAMES[AcknowledgeType(each.type)]
                setattr(self, name, getattr(self, name) + records)
            elif not each.renews:
                self.lost += records
        self.changed()

    def page(self) -> dict[str, Any]:
        """The counts by name, for `/queues`."""
        names = ("acquired", "accepted", "released", "rejected", "lost", "in_flight", "dead_letters", "renewed")
        counts = {name: getattr(self, name) for name in (*names, "epochs", "failed_jobs")}
        deliveries = {str(each): count for each, count in sorted(self.deliveries.items())}
        return {**counts, "job_s": round(self.job_s, 3), "deliveries": deliveries, "failure": self.failure}

    def line(self) -> str:
        """The counts in a line."""
        texts = [f"{self.acquired:,} acquired", f"{self.accepted:,} accepted"]
        more = (
            ("released", self.released), ("rejected", self.rejected), ("lost", self.lost),
            ("in flight", self.in_flight), ("renewed", self.renewed), ("jobs failed", self.failed_jobs),
        )  # fmt: skip
        return ", ".join([*texts, *(f"{count:,} {name}" for name, count in more if count)])
