"""What becomes of each acquired record, by the rows that the job made of it.

| the record | becomes |
| --- | --- |
| can't be decoded, or has a row that can't be written | rejected |
| has a row that says "reject" | rejected |
| has a row that says "release", or none of the three | released; rejected at its last delivery |
| has rows, and all say "accept" | accepted |
| has no row | as the program says: accepted or released |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.client.sharing.acknowledgements import AcknowledgeType
from kohort.spark.program.internal_columns import OFFSET, PARTITION

ACCEPT: Final = int(AcknowledgeType.ACCEPT)
RELEASE: Final = int(AcknowledgeType.RELEASE)
REJECT: Final = int(AcknowledgeType.REJECT)

_CODES: Final = {"accept": ACCEPT, "release": RELEASE, "reject": REJECT}  # the more severe, the larger
_REJECTED: Final = "the program rejects it"
_RELEASED: Final = "the program releases it"

Numbers = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Settlement:
    """What becomes of an epoch's records.

    Attributes:
        kinds: an `AcknowledgeType` for each; 0: it stays locked.
        reasons: why, by the record's row; of those that aren't accepted.
    """

    kinds: Numbers
    reasons: Mapping[int, str]

    def rows(self, kind: int) -> Numbers:
        """The rows of the records that this becomes of."""
        return np.flatnonzero(self.kinds == kind)

    def without(self, rows: Numbers) -> Settlement:
        """The same, with some records that stay locked."""
        kinds = self.kinds.copy()
        kinds[rows] = 0
        return Settlement(kinds, self.reasons)


@dataclass(frozen=True)
class Rules:
    """What the program says. Attributes as of `WorkDef` and `QueueSettings`."""

    outcome: str | None
    reason: str | None
    missing: str
    max_deliveries: int


def settle(
    records: pa.Table, results: pa.Table | None, rules: Rules, failed: Mapping[int, str], bad: Mapping[int, str]
) -> Settlement:
    """What becomes of records.

    Args:
        records: with `partition`, `offset` and `delivery_count`.
        results: the job's rows, with `_partition` and `_offset`; None if it made none.
        failed: records whose job failed, by row, with the error: they are released.
        bad: records that can't be decoded, or whose results can't be written, by row, and why: they are rejected.
    """
    kinds = np.zeros(records.num_rows, np.int8)
    reasons: dict[int, str] = {}
    if results is not None and results.num_rows:
        _count_results(kinds, reasons, records, results, rules)
    nothing = kinds == 0
    kinds[nothing] = _CODES[rules.missing]
    if rules.missing == "release":
        reasons.update(dict.fromkeys(np.flatnonzero(nothing).tolist(), "the result has no row of it"))
    for row, error in failed.items():
        kinds[row], reasons[row] = RELEASE, error
    for row, error in bad.items():
        kinds[row], reasons[row] = REJECT, error
    deliveries = records.column("delivery_count").to_numpy()
    last = np.flatnonzero((kinds == RELEASE) & (deliveries >= rules.max_deliveries))
    kinds[last] = REJECT
    for row in last.tolist():
        why = reasons.get(row, _RELEASED)
        reasons[row] = f"given up at delivery {deliveries[row]} of {rules.max_deliveries}: {why}"
    return Settlement(kinds, reasons)


def accepted_results(records: pa.Table, results: pa.Table | None, settlement: Settlement) -> pa.Table:
    """The job's rows of the records that are accepted; none without columns, if it made none."""
    if results is None:
        return pa.table({})
    rows = records_of(records, results)
    return results.filter(pa.array(settlement.kinds[rows] == ACCEPT))


def _count_results(kinds: Numbers, reasons: dict[int, str], records: pa.Table, results: pa.Table, rules: Rules) -> None:
    rows = records_of(records, results)
    if rules.outcome is None:
        kinds[rows] = ACCEPT
        return
    said = results.column(rules.outcome).combine_chunks()
    codes = pc.index_in(said, pa.array(list(_CODES))).to_numpy(zero_copy_only=False)
    known = ~np.isnan(codes) if codes.dtype.kind == "f" else np.ones(len(codes), np.bool_)
    values = np.array(list(_CODES.values()), np.int8)
    codes = np.where(known, values[np.where(known, codes, 0).astype(np.int64)], RELEASE).astype(np.int8)
    np.maximum.at(kinds, rows, codes)
    why = None if rules.reason is None else results.column(rules.reason)
    for at in np.flatnonzero((codes != ACCEPT) & (codes == kinds[rows])).tolist():
        row = int(rows[at])
        if row in reasons:
            continue
        text = None if why is None else why[at].as_py()
        if text is None and not known[at]:
            text = f"its outcome is {said[at].as_py()!r}, not accept, release or reject"
        if text is not None:
            reasons[row] = text
    for row in np.flatnonzero(kinds > ACCEPT).tolist():
        reasons.setdefault(row, _REJECTED if kinds[row] == REJECT else _RELEASED)


def records_of(records: pa.Table, results: pa.Table) -> Numbers:
    """The row of each result's record.

    Raises:
        ValueError: a result is of no record.
    """
    partitions, offsets = records.column("partition").to_numpy(), records.column("offset").to_numpy()
    ours = results.column(PARTITION).to_numpy(), results.column(OFFSET).to_numpy()
    found = np.full(results.num_rows, -1, np.int64)
    for partition in np.unique(partitions):
        there = np.flatnonzero(partitions == partition)
        there = there[np.argsort(offsets[there])]
        wanted = np.flatnonzero(ours[0] == partition)
        at = np.searchsorted(offsets[there], ours[1][wanted])
        at = np.minimum(at, len(there) - 1)
        right = offsets[there[at]] == ours[1][wanted]
        found[wanted[right]] = there[at[right]]
    if len(strange := np.flatnonzero(found < 0)):
        at = int(strange[0])
        raise ValueError(
            f"a row of the result has {PARTITION}={results.column(PARTITION)[at].as_py()} and "
            f"{OFFSET}={results.column(OFFSET)[at].as_py()}, which no record has: transforms must keep both as they are"
        )
    return found
