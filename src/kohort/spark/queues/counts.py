"""What a worker has done of a queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kohort.client.sharing.acknowledgements import AcknowledgeType
from kohort.client.sharing.shared_partitions import AcknowledgementResult
from kohort.protocol.errors import ErrorCode, KafkaError

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
        epochs: jobs that were acknowledged.
        failed_jobs: jobs that failed.
        job_s: how long jobs took, in all.
        not_renewable: whether a broker has said that it renews no locks.
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
    epochs: int = 0
    failed_jobs: int = 0
    job_s: float = 0.0
    not_renewable: bool = False
    changed: Callable[[], object] = field(default=lambda: None, repr=False)

    def acknowledged(self, result: AcknowledgementResult) -> None:
        """Counts what a broker has done about acknowledgements."""
        for each in result.acknowledgements:
            records = each.last - each.first + 1
            if result.error is None:
                name = _NAMES[AcknowledgeType(each.type)]
                setattr(self, name, getattr(self, name) + records)
            elif not each.renews:
                self.lost += records
            elif isinstance(result.error, KafkaError) and result.error.code is ErrorCode.UNSUPPORTED_VERSION:
                self.not_renewable = True
        self.changed()

    def line(self) -> str:
        """The counts in a line."""
        texts = [f"{self.acquired:,} acquired", f"{self.accepted:,} accepted"]
        more = (
            ("released", self.released), ("rejected", self.rejected), ("lost", self.lost),
            ("in flight", self.in_flight), ("renewed", self.renewed), ("jobs failed", self.failed_jobs),
        )  # fmt: skip
        return ", ".join([*texts, *(f"{count:,} {name}" for name, count in more if count)])
