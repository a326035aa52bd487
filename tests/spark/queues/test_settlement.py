"""What becomes of each record, beside a model that goes record by record."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.queues.settlement import ACCEPT, REJECT, RELEASE, Rules, accepted_results, settle

RULES = Rules("outcome", "reason", "accept", 3)
CODES = {"accept": ACCEPT, "release": RELEASE, "reject": REJECT}

Record = tuple[int, int, int]  # partition, offset, delivery count
Row = tuple[int, int, str | None]  # partition, offset, outcome


def records(given_: list[Record]) -> pa.Table:
    columns = list(zip(*given_, strict=True)) if given_ else [[], [], []]
    kinds = (pa.int32(), pa.int64(), pa.int16())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=["partition", "offset", "delivery_count"])


def results(rows: list[Row], reason: str | None = None) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [[], [], []]
    kinds = (pa.int32(), pa.int64(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    table = pa.table(arrays, names=["_partition", "_offset", "outcome"])
    return table.append_column("reason", pa.array([reason] * len(rows), pa.string()))


@st.composite
def epochs(draw: st.DrawFn) -> tuple[list[Record], list[Row], list[int], list[int]]:
    places = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), unique=True, min_size=1))
    given_ = [(*place, draw(st.integers(1, 4))) for place in places]
    said = st.sampled_from(["accept", "release", "reject", "acept", None])
    rows = draw(st.lists(st.tuples(st.sampled_from(places), said)))
    some = st.lists(st.integers(0, len(places) - 1), unique=True, max_size=3)
    return given_, [(*place, outcome) for place, outcome in rows], draw(some), draw(some)


def model(record: Record, rows: list[Row], rules: Rules, failed: bool, bad: bool) -> int:
    if bad:
        return REJECT
    said = [
        CODES.get(outcome or "", RELEASE) for partition, offset, outcome in rows if (partition, offset) == record[:2]
    ]
    kind = RELEASE if failed else max(said, default=CODES[rules.missing])
    return REJECT if kind == RELEASE and record[2] >= rules.max_deliveries else kind


@given(epochs(), st.sampled_from(["accept", "release"]))
def test_it_is_as_record_by_record(epoch: tuple[list[Record], list[Row], list[int], list[int]], missing: str) -> None:
    given_, rows, failed, bad = epoch
    rules = Rules("outcome", "reason", missing, 3)
    made = settle(records(given_), results(rows), rules, dict.fromkeys(failed, "down"), dict.fromkeys(bad, "torn"))
    wanted = [model(each, rows, rules, row in failed, row in bad) for row, each in enumerate(given_)]
    assert made.kinds.tolist() == wanted
    assert {row for row, kind in enumerate(wanted) if kind != ACCEPT} == set(made.reasons)
    accepted = accepted_results(records(given_), results(rows), made)
    there = {each[:2] for each, kind in zip(given_, wanted, strict=True) if kind == ACCEPT}
    assert accepted.select(["_partition", "_offset"]).num_rows == sum(row[:2] in there for row in rows)


def test_without_an_outcome_all_is_accepted_that_the_job_has_done() -> None:
    made = settle(records([(0, 1, 1), (0, 2, 1)]), results([(0, 2, None)]), Rules(None, None, "release", 3), {}, {})
    assert made.kinds.tolist() == [RELEASE, ACCEPT]


def test_a_result_of_no_record_is_an_error_that_says_which() -> None:
    with pytest.raises(ValueError, match="_partition=0 and _offset=7, which no record has"):
        settle(records([(0, 1, 1)]), results([(0, 7, "accept")]), RULES, {}, {})


def test_reasons_are_those_of_the_program() -> None:
    given_ = records([(0, 1, 1)])
    assert settle(given_, results([(0, 1, "reject")], "no such image"), RULES, {}, {}).reasons == {0: "no such image"}


def test_an_unknown_outcome_is_a_release_that_says_so() -> None:
    made = settle(records([(0, 1, 1)]), results([(0, 1, "acept")]), RULES, {}, {})
    assert made.reasons == {0: "its outcome is 'acept', not accept, release or reject"}


def test_the_last_release_is_a_rejection_that_says_why() -> None:
    made = settle(records([(0, 1, 3)]), None, RULES, {0: "down"}, {})
    assert (made.kinds.tolist(), made.reasons) == ([REJECT], {0: "given up at delivery 3 of 3: down"})
