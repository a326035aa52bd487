"""What a notebook shows of an application, and of an instance that runs: from events, as pure text."""

from __future__ import annotations

from kohort.spark import StreamsApp
from kohort.spark.app_html import application_page, queues_page, running_page
from kohort.spark.monitoring.events import EpochDone, Restoring, TasksNow
from kohort.spark.monitoring.overview import Overview
from kohort.spark.program.topology_outline import SubtopologyOutline
from kohort.spark.queues.counts import QueueCounts

HOSTILE = "<script>alert(1)</script>"
OUTLINES = (
    SubtopologyOutline("0", ("flights",), (), ("app-delays-repartition",)),
    SubtopologyOutline("1", ("app-delays-repartition",), ("delays",), ("out", HOSTILE)),
)


def done(**more: object) -> EpochDone:
    given: dict[str, object] = {
        "at": 99.0, "subtopology": "1", "number": 1, "input": "stream", "records": 5000, "bytes": 1, "out_records": 1,
        "dropped": 1, "late": 2, "lag": 1234, "tasks": ("1_0",), "took_ms": 500.0, "job_ms": 1.0, "commit_ms": 1.0,
        "reasons": {HOSTILE: 1},
    }  # fmt: skip
    return EpochDone(**given | more)  # type: ignore[arg-type]


def overview() -> Overview:
    return Overview(clock=lambda: 100.0)


def test_a_program_shows_what_each_subtopology_reads_keeps_and_writes() -> None:
    page = application_page(HOSTILE, OUTLINES, HOSTILE)
    assert "<script" not in page
    assert page.count("app-delays-repartition") == 2
    assert ">delays</td>" in page
    assert "out<br>&lt;script&gt;" in page


def test_an_instance_shows_its_tasks_lag_and_rates() -> None:
    seen = overview()
    seen.tasks(TasksNow(1.0, ["0_0", "0_1", "0_2", "1_0"], ["1_1"], ["1_2"], restoring=["1_0"], closing=["0_7"]))
    seen.restoring(Restoring(1.0, "1_0", HOSTILE, 10, 60, 50, done=False))
    seen.epoch(done())
    page = running_page("app", "running", seen, OUTLINES, None)
    assert "<script" not in page
    assert ">running 0-2<br>closing 7</td>" in page
    assert ">restoring 0<br>standby 1<br>warm-up 2</td>" in page
    assert ">1,234</td>" in page and ">5,000</td>" in page
    assert "&lt;/script&gt;<br>2 late" in page
    assert "lag of the tasks here 1,234" in page


def test_what_is_wrong_is_shown() -> None:
    seen = overview()
    seen.tasks(TasksNow(1.0, [], [], [], stopped={"1": HOSTILE}))
    seen.waiting(HOSTILE)
    for each in range(10):
        seen.tasks(TasksNow(1.0, ["0_0"], [], [], restoring=["0_0"], stopped={"1": HOSTILE}))
        seen.restoring(Restoring(1.0, "0_0", f"store-{each}", 0, 1, 1, done=False))
    page = running_page("app", "waiting", seen, OUTLINES, HOSTILE)
    assert "<script" not in page
    assert "waiting: &lt;script" in page and "subtopology 1 is stopped: &lt;script" in page
    assert "and 2 stores more" in page


def test_an_instance_that_has_left_says_what_the_group_has_left_to_read() -> None:
    seen = overview()
    seen.epoch(done())
    seen.left(77)
    assert "the group had 77 left to read" in running_page("app", "stopped", seen, OUTLINES, None)


def test_a_worker_shows_what_became_of_its_queues() -> None:
    counts = QueueCounts(HOSTILE, acquired=1200, accepted=1100, failure=HOSTILE)
    page = queues_page("app", "running", overview(), [counts], HOSTILE)
    assert "<script" not in page
    assert "1,200 acquired, 1,100 accepted" in page


def test_what_starts_says_how_far_it_is() -> None:
    seen = overview()
    for pages in (
        lambda: running_page("app", seen.state(), seen, OUTLINES, None),
        lambda: queues_page("app", seen.state(), seen, [], None),
    ):
        seen.starting(f"compiling {HOSTILE}")
        assert "compiling &lt;script" in pages()
        seen.waiting("no broker answers")
        assert "waiting: no broker answers" in pages() and "compiling" not in pages()
        seen.waiting(None)
    seen.tasks(TasksNow(1.0, ["0_0"], [], []))
    assert "compiling" not in running_page("app", seen.state(), seen, OUTLINES, None)


def test_an_application_shows_itself_without_a_session() -> None:
    """Where one is left by another test, the topology is there, too."""
    app = StreamsApp(HOSTILE.replace("/", ".").replace("<", "_").replace(">", "_").replace("(", "-").replace(")", "-"))
    assert app.settings.application_id in app._repr_html_()
