"""An epoch's records, and what becomes of them by what is known so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kohort.spark.queues.settlement import ACCEPT, Rules, Settlement, accepted_results, records_of, settle


@dataclass
class QueueEpoch:
    """Settled again with each thing that turns out.

    Args:
        records: what was acquired.
        results: the job's rows; None if there are none.
        failed: records whose job failed, by row, with the error.
        bad: records that can't be decoded, by row, and why.

    Attributes:
        settlement: what becomes of the records.
        accepted: the job's rows of those that are accepted.

    Raises:
        ValueError: a result is of no record.
    """

    records: pa.Table
    results: pa.Table | None
    rules: Rules
    failed: dict[int, str]
    bad: dict[int, str]
    settlement: Settlement = field(init=False)
    accepted: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        self._settle()

    def reject(self, results: Mapping[int, str]) -> None:
        """Some of `accepted`, by row, can't be written, and never will be: their records are rejected."""
        if not results:
            return
        found = records_of(self.records, self.accepted)
        for row, why in results.items():
            self.bad.setdefault(int(found[row]), why)
        self._settle()

    def release(self, why: str) -> None:
        """What is accepted isn't written: it is released."""
        self.failed |= dict.fromkeys(self.settlement.rows(ACCEPT).tolist(), why)
        self._settle()

    def _settle(self) -> None:
        self.settlement = settle(self.records, self.results, self.rules, self.failed, self.bad)
        self.accepted = accepted_results(self.records, self.results, self.settlement)
