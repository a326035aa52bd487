"""Applications in notebooks: in the background of the test, and docs/notebooks.md in a real kernel."""

from __future__ import annotations

import ast
import asyncio
import inspect
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp, count
from kohort.spark.program.topology_outline import SubtopologyOutline, outline
from kohort.testing.broker import Broker
from tests.waiting import eventually

from .applications import create_topics, members_of, producer

PAGE = Path(__file__).parents[2] / "docs" / "notebooks.md"
STATES = ("starting", "waiting", "running", "stopping", "stopped")


def cells(servers: str, state_dir: Path) -> list[str]:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [each.replace("localhost:9092", servers).replace("/tmp/delays", str(state_dir)) for each in blocks]


def test_the_outline_has_what_a_program_reads_keeps_and_writes(spark: SparkSession) -> None:
    app = StreamsApp("app")
    flights = app.stream(["flights", "more"], schema="carrier STRING, origin STRING", key="carrier")
    joined = flights.join(app.table("airlines", schema="carrier STRING, name STRING", key="carrier"))
    joined = joined.join(app.global_table("airports", schema="origin STRING, town STRING", key="origin"))
    joined.to("joined")
    joined.for_each_batch(print)
    joined.group_by("name").aggregate("n", n=count()).to("counts")
    assert outline(app.compile(spark)) == (
        SubtopologyOutline(
            "0", ("flights", "more", "airlines"), ("airlines",), ("joined", "print()", "app-n-repartition")
        ),
        SubtopologyOutline("1", ("app-n-repartition",), ("n",), ("counts",)),
        SubtopologyOutline("globals", ("airports",), ("airports",), ()),
    )
    page = app._repr_html_()
    assert ">flights<br>more<br>airlines</td>" in page
    assert "Sub-topology: 1" in app.describe(spark)._repr_html_()


def test_a_program_that_cannot_run_says_why(spark: SparkSession) -> None:
    app = StreamsApp("app")
    app.stream("flights", schema="n BIGINT").where("<b>").to("out")
    page = app._repr_html_()
    assert "It can&#x27;t run as it is written" in page
    assert "<b><b>" not in page


def test_the_guide_runs_in_a_session(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a notebook does: cells may await, and those that end with something show it."""
    servers = kohort_fresh_broker.bootstrap_servers
    scope: dict[str, Any] = {"__name__": "notebook"}
    shown = []
    for cell in cells(servers, tmp_path):
        if ".store(" in cell:
            eventually(lambda: scope["running"].overview.records == 3, within=120)
            running_page = scope["app"]._repr_html_()
            assert "records/s, lag of the tasks here" in running_page
        *statements, last = ast.parse(cell).body
        run(ast.Module(statements, []), scope)
        if isinstance(last, ast.Expr):
            shown.append(run(ast.Expression(last.value), scope))
        else:
            run(ast.Module([last], []), scope)

    assert "<td" in shown[0]._repr_html_()
    assert "|     AA|  2|15.0|" in capsys.readouterr().out
    (group,) = [each for each in shown if hasattr(each, "group_id")]
    assert "active 0: 0-1" in group._repr_html_()
    assert "0-1</td>" in running_page
    running = scope["running"]
    assert running.state == "stopped"
    assert "the group had 0 left to read" in running._repr_html_()
    assert members_of(servers, "delays") == ()


def run(tree: ast.Module | ast.Expression, scope: dict[str, Any]) -> Any:
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    code = compile(tree, str(PAGE), mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    found = eval(code, scope)
    return asyncio.run(found) if inspect.iscoroutine(found) else found


def test_what_fails_in_the_background_is_raised_where_it_is_waited_for(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = StreamsApp("app", bootstrap_servers=kohort_fresh_broker.bootstrap_servers, state_dir=tmp_path)
    app.stream("nowhere", schema="n BIGINT").to("out")
    running = app.start(spark)
    with pytest.raises(ProgramError, match="nowhere"):
        running.wait(120)
    assert running.state == "failed"
    assert any("app has ended" in each.message for each in caplog.records if each.levelno == logging.ERROR)
    assert "nowhere" in app._repr_html_()

    create_topics(kohort_fresh_broker.bootstrap_servers, "nowhere", "out")
    again = app.start(spark)
    app.stop()
    assert again.wait(120)
    assert again.state == "stopped"


def test_a_worker_of_queues_runs_in_the_background(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path
) -> None:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "jobs", "done")
    app = StreamsApp("workers", bootstrap_servers=servers, state_dir=tmp_path)
    app.queue("jobs", schema="id STRING").process().to("done")
    assert "Share group: workers" in app._repr_html_()
    sending = producer(servers)
    sending.produce("jobs", '{"id": "a"}')
    sending.flush()
    with app.start(spark) as running:
        eventually(lambda: "1 accepted" in repr(running), within=120)
        assert running.state == "running"
        assert "1 acquired, 1 accepted" in app._repr_html_()
    assert running.state == "stopped"


@pytest.mark.long
def test_the_guide_is_a_notebook(kohort_fresh_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which the view below the second cell changes; and a kernel that ends stops what runs."""
    import nbformat
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    servers = kohort_fresh_broker.bootstrap_servers
    sources = cells(servers, tmp_path / "state")
    reading = next(number for number, each in enumerate(sources) if ".store(" in each)
    sources.insert(reading, "import time\nwhile running.overview.records < 3:\n    time.sleep(0.1)")
    sources += ["again = app.start(spark)\nwhile again.state != 'running':\n    time.sleep(0.1)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in sources])
    manager = AsyncKernelManager(kernel_name="python3", shutdown_wait_time=120)
    updates: list[str] = []

    class Watching(NotebookClient):
        """Keeps what the view is replaced by, each time."""

        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["header"]["msg_type"] == "update_display_data":
                updates.append(msg["content"]["data"]["text/html"])
            return super().process_message(msg, cell, cell_index)

    client = Watching(notebook, km=manager, timeout=200, record_timing=False)
    client.execute(cleanup_kc=True)  # which is for a manager of its own by default

    def page(cell: int) -> str:
        return "".join(
            output["data"].get("text/html", "") for output in notebook.cells[cell].outputs if "data" in output
        )

    assert "delays-by-carrier" in page(0)
    assert "stopped" in page(1) and "the group had 0 left to read" in page(1)
    states = [re.findall(rf">({'|'.join(STATES)})<", view) for view in updates]
    assert states[-1] == ["stopped"]
    assert ["running"] in states, updates  # in between, "restoring" may be seen
    texts = [output.get("text", "") for output in notebook.cells[reading + 1].outputs]
    assert any("|     AA|  2|15.0|" in each for each in texts)
    assert "active 0: 0-1" in page(reading + 2)
    assert members_of(servers, "delays") == ()
