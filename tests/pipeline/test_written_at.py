"""Errors of a program that is compiled say where it is written what they are about."""

from __future__ import annotations

import inspect
import linecache

import pytest
from pyspark.sql import SparkSession

from kohort.spark import ProgramError, StreamsApp
from kohort.spark.program.compiler import compile_program
from kohort.spark.program.streams import AggregateDef, Stream, TransformDef
from kohort.spark.program.written_at import Written, located, written_at


def a_line() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def visits() -> Stream:
    return StreamsApp("a", bootstrap_servers="127.0.0.1:1").stream("visits", schema="user STRING, n INT", key="user")


def test_definitions_know_their_line() -> None:
    found, line = visits().group_by("user").aggregate_arrow("n", print, state="n INT"), a_line()
    definition: AggregateDef = found._definition
    assert definition.at == f"{__file__}, line {line}"
    step = visits().where("n > 1")._steps[0]
    assert isinstance(step, TransformDef) and step.at.startswith(__file__)
    assert written_at().startswith(__file__)


def test_the_innermost_definition_counts_and_says_it_once() -> None:
    outer, inner = Written(at="outer.py, line 1"), Written(at="inner.py, line 2")
    with pytest.raises(ProgramError) as raised, located(outer), located(inner):
        raise ProgramError("it can't be")
    assert (str(raised.value), raised.value.at) == ("it can't be (inner.py, line 2)", "inner.py, line 2")


WRONG = {
    "a transform": lambda stream: stream.where("m > 1").to("out"),
    "an output": lambda stream: stream.to("out", key="m"),
    "a group": lambda stream: stream.group_by("m").process("p", print, output="n INT"),
    "a union": lambda stream: stream.union(stream.select("user")).to("out"),
    "a step after a union": lambda stream: stream.union(stream).group_by("m").latest_by("n").to("out"),
    "a function's output": lambda stream: stream.group_by("user").process("p", print, output="n INTEGERS"),
    "a join of streams": lambda stream: stream.join_stream(stream, on="m", within="1 second", grace="1 second").to(
        "out"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_compiling_say_the_line(name: str, spark: SparkSession) -> None:
    stream = visits()
    WRONG[name](stream)
    with pytest.raises(ProgramError) as raised:
        compile_program(stream._graph, StreamsApp("a", bootstrap_servers="127.0.0.1:1").settings, spark)
    assert raised.value.at is not None and str(raised.value).endswith(f"({raised.value.at})")
    path, _, line = raised.value.at.rpartition(", line ")
    assert f'"{name}": ' in linecache.getline(path, int(line))


def test_timers_by_event_time_need_it_in_the_rows(spark: SparkSession) -> None:
    app = StreamsApp("a", bootstrap_servers="127.0.0.1:1")
    stream = app.stream("visits", schema="user STRING, at TIMESTAMP", key="user", event_time="at")
    by_user = stream.select("user").group_by("user")
    by_user.process("idle", print, output="user STRING", timers="processing")
    compile_program(stream._graph, app.settings, spark)
    by_user.process("late", print, output="user STRING", timers="event")
    with pytest.raises(
        ProgramError, match=r"timers go by the event time, 'at', and a transform before it loses that"
    ) as raised:
        compile_program(stream._graph, app.settings, spark)
    assert raised.value.at is not None and raised.value.at.startswith(__file__)
