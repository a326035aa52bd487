"""What an application finds out, and says, before Spark starts."""

from __future__ import annotations

import shlex
import traceback

import pytest

pytest.importorskip("pyspark")

from kohort.client.config import ClientConfig
from kohort.client.errors import NoBrokerError
from kohort.spark import DeadLetter, ProgramError, StreamsApp, count
from kohort.spark.monitoring.events import Listener
from kohort.spark.program.topics_there import NamedTopics, create, topics_of
from kohort.testing import Broker
from tests.cli.support import invoke


class _SparkStartsError(Exception):
    pass


@pytest.fixture(autouse=True)
def _spark_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def starts(_: object) -> object:
        raise _SparkStartsError

    monkeypatch.setattr("kohort.spark.app._session", starts)
    monkeypatch.setattr("kohort.spark.app._active", lambda _: None)


def test_a_missing_topic_is_said_before_spark_starts_and_the_command_that_is_shown_makes_it(
    kohort_broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    servers = kohort_broker.bootstrap_servers
    app = StreamsApp("starting", bootstrap_servers=servers)
    app.stream("starting.in", schema="n INT").to("starting.out")
    with pytest.raises(ProgramError, match=r"lacks topics: starting\.in, read; starting\.out, written\.") as refused:
        app.run()
    assert len(traceback.extract_tb(refused.value.__traceback__)) == 2  # the program's line, and `run`
    assert refused.value.__cause__ is None
    command = str(refused.value).rpartition(": ")[2]
    assert command == f"kohort topics create starting.in starting.out -b {servers}"
    assert capfd.readouterr().err == ""

    assert invoke(*shlex.split(command)[1:]).exit_code == 0
    with pytest.raises(_SparkStartsError):
        app.run()
    assert capfd.readouterr().err.endswith("Z starting: starting Spark\n")


def test_in_the_background_a_missing_topic_is_said_before_spark_starts_too(kohort_broker: Broker) -> None:
    class Steps(Listener):
        def starting(self, step: str) -> None:
            heard.append(step)

    heard: list[str] = []
    servers = kohort_broker.bootstrap_servers
    app = StreamsApp("behind", bootstrap_servers=servers)
    app.stream("behind.in", schema="n INT").to("behind.out")
    with pytest.raises(ProgramError, match=r"lacks topics: behind\.in, read; behind\.out, written\."):
        app.start(listeners=[Steps()]).wait(60)
    assert heard == []

    assert invoke("topics", "create", "behind.in", "behind.out", servers=servers).exit_code == 0
    with pytest.raises(_SparkStartsError):
        app.start(listeners=[Steps()]).wait(60)
    assert heard == ["starting Spark"]


def test_a_pattern_without_a_topic_is_said_before_spark_starts(kohort_broker: Broker) -> None:
    app = StreamsApp("starting", bootstrap_servers=kohort_broker.bootstrap_servers)
    app.stream(pattern="nothing-.*", schema="n INT").to("out")
    with pytest.raises(ProgramError, match="no topic matches this pattern"):
        app.run()


@pytest.mark.parametrize("progress", [True, False])
def test_without_a_broker_it_says_at_once_what_it_waits_for_and_can_be_stopped(
    progress: bool, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    class Stopping(Listener):
        def waiting(self, reason: str | None) -> None:
            heard.append(reason)
            app.stop()

    heard: list[str | None] = []
    app = StreamsApp("starting", bootstrap_servers="127.0.0.1:1")
    app.stream("in", schema="n INT").to("out")
    app.run(listeners=[Stopping()], progress=progress)
    assert heard[0] is not None and "no broker answers at 127.0.0.1:1" in heard[0]
    said = capfd.readouterr().err if progress else caplog.text
    assert f"starting{':' if progress else ''} wait" in said and heard[0] in said


def test_a_broker_that_is_not_found_in_time_is_one_error(capfd: pytest.CaptureFixture[str]) -> None:
    client = ClientConfig(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=100)
    app = StreamsApp("starting", bootstrap_servers=client)
    app.stream("in", schema="n INT").to("out")
    with pytest.raises(NoBrokerError) as failed:
        app.run()
    assert len(traceback.extract_tb(failed.value.__traceback__)) == 2
    assert failed.value.__cause__ is None


def test_all_topics_that_a_program_names_are_known() -> None:
    app = StreamsApp("starting", on_error=DeadLetter("dead"))
    lines = app.stream(["a", "b"], schema="n INT, t STRING")
    lines.to("rows")
    lines.to(column="t")
    lines.group_by("n").aggregate("counts", n_=count()).to("groups")
    app.stream(pattern="p-.*", schema="n INT").to("more")
    app.table("t", key="n", schema="n INT")
    assert topics_of(app._graph) == NamedTopics(
        frozenset({"a", "b", "t"}), frozenset({"dead", "rows", "groups", "more"}), ("p-.*",)
    )

    app = StreamsApp("working")
    jobs = app.queue("jobs", schema="id INT", dead_letters="dead")
    assert topics_of(app._graph, app._queues) == NamedTopics(frozenset({"jobs"}), frozenset({"dead"}))
    jobs.process().to("done")
    assert topics_of(app._graph, app._queues) == NamedTopics(frozenset({"jobs"}), frozenset({"dead", "done"}))


def test_commands_can_be_pasted() -> None:
    client = ClientConfig(bootstrap_servers="[::1]:9093,b:9092", security_protocol="SSL")
    assert create(["a", "b"], client, 3) == (
        "Create them: kohort topics create a b -b '[::1]:9093,b:9092' --config client.properties --partitions 3"
    )
