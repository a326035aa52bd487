from __future__ import annotations

from pathlib import Path

import pytest

from kohort.cli.demo.charts.instances import draw_instances
from kohort.cli.demo.timeline import ACTIVE, RESTORING, STANDBY, Timeline
from kohort.spark.monitoring.journal_analysis import read_journals
from tests.cli.demo.journals import KILL, START, TAKEN_OVER, write_journals


@pytest.fixture
def timeline(tmp_path: Path) -> Timeline:
    return Timeline(read_journals(*write_journals(tmp_path)), {"instance-1": KILL})


def test_counts_flights_but_not_tables_or_repartition_topics(timeline: Timeline) -> None:
    assert timeline.flights == 10 * 1000 + 15 * 1000 + 5 * 2000
    assert sum(timeline.throughput.total) == pytest.approx(timeline.flights)


def test_records_that_were_left_out(timeline: Timeline) -> None:
    assert timeline.left_out == {"late": 20, "no key": 40}


def test_the_pause_of_a_task_lasts_from_the_kill_to_its_first_commit_elsewhere(timeline: Timeline) -> None:
    assert timeline.takeovers() == pytest.approx({"0_0": 6.0, "1_1": 6.1})


def test_the_longest_pause_of_a_task_that_stays(timeline: Timeline) -> None:
    assert timeline.longest_wait() == pytest.approx(1.0)


def test_spans_of_a_task(timeline: Timeline) -> None:
    spans = [(span.instance, span.role, span.begin - START, span.end - START) for span in timeline.spans
             if span.task == "0_0"]  # fmt: skip
    assert [(who, role) for who, role, _, _ in spans] == [
        ("instance-1", RESTORING), ("instance-1", ACTIVE), ("instance-2", STANDBY), ("instance-2", RESTORING),
        ("instance-2", ACTIVE),
    ]  # fmt: skip
    assert spans[1][3] == pytest.approx(KILL - START)  # its tasks end with the kill, not with its last event
    assert spans[4][2] == pytest.approx(TAKEN_OVER + 0.2 - START)


def test_without_a_kill_there_is_no_pause(tmp_path: Path) -> None:
    timeline = Timeline(read_journals(*write_journals(tmp_path)), {})
    assert timeline.takeovers() == {}
    assert timeline.longest_wait() is None


def test_draws_it(timeline: Timeline, tmp_path: Path) -> None:
    assert draw_instances(timeline, tmp_path / "instances.png").read_bytes().startswith(b"\x89PNG")
