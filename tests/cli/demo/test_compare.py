from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kohort.cli.demo.compare import Groups, batch_groups, differences


def hours(**changed: Any) -> dict[str, Groups]:
    row = {"window": "w", "origin": "JFK", "n": 3, "mean": 1 / 3, "p90": 2, "worst": 2, **changed}
    return {"delays-by-hour": {("w", "JFK"): row}, "delays-by-sky": {}}


def test_sums_of_fractions_may_differ_in_their_last_digits() -> None:
    assert differences(hours(), hours(mean=1 / 3 + 1e-13)) == []


def test_says_what_differs_and_where() -> None:
    assert differences(hours(n=4, mean=None), hours()) == [
        f"delays-by-hour, w JFK: mean is None in the stream, {1 / 3!r} in the batch",
        "delays-by-hour, w JFK: n is 4 in the stream, 3 in the batch",
    ]


def test_a_group_that_either_lacks_is_a_difference() -> None:
    nothing: dict[str, Groups] = {"delays-by-hour": {}, "delays-by-sky": {}}
    assert differences(nothing, hours()) == ["delays-by-hour, w JFK: the stream lacks it"]
    assert differences(hours(), nothing) == ["delays-by-hour, w JFK: the batch job lacks it"]


def test_reads_what_the_batch_job_wrote(tmp_path: Path) -> None:
    result = tmp_path / "batch.jsonl"
    row = {"name": "JetBlue Airways", "sky": "snow", "n": 2, "mean": 1.5, "late": None}
    result.write_text(json.dumps({"topic": "delays-by-sky", **row}) + "\n")
    assert batch_groups(result)["delays-by-sky"] == {("JetBlue Airways", "snow"): row}
