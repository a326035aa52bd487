"""Log lines: their fields, their quoting, and that none can be forged."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.broker.logging import JsonFormatter, PairsFormatter, set_up_logging, split


@pytest.fixture
def written() -> Iterator[Callable[..., io.StringIO]]:
    """Sets up logging to a string; afterwards everything is as before."""
    names = ("kohort", "asyncio")
    before = [(logging.getLogger(name), logging.getLogger(name).__dict__.copy()) for name in names]
    handlers = [logger.handlers[:] for logger, _ in before]

    def set_up(level: str = "info", form: str = "text") -> io.StringIO:
        stream = io.StringIO()
        set_up_logging(level, form, stream)
        return stream

    yield set_up
    for (logger, state), old in zip(before, handlers, strict=True):
        logger.handlers[:] = old
        logger.setLevel(state["level"])
        logger.propagate = state["propagate"]


log = logging.getLogger("kohort.test")


def record(message: str, *args: object) -> logging.LogRecord:
    made = logging.LogRecord("kohort.test", logging.INFO, __file__, 1, message, args, None)
    made.created = 1_700_000_000.0421
    return made


def test_a_line_is_pairs_of_keys_and_values() -> None:
    line = PairsFormatter().format(record("topic created topic=%s partitions=%d", "t", 3))

    assert line == (
        'time=2023-11-14T22:13:20.042Z level=info logger=kohort.test event="topic created" topic=t partitions=3'
    )


def test_json_keeps_types() -> None:
    line = JsonFormatter().format(record("topic created topic=%s partitions=%d", "t", 3))

    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.042Z",
        "level": "info",
        "logger": "kohort.test",
        "event": "topic created",
        "topic": "t",
        "partitions": 3,
    }


@pytest.mark.parametrize(
    ("message", "args", "event", "fields"),
    [
        ("plain", (), "plain", {}),
        ("100% plain", (), "100% plain", {}),
        ("took %d ms", (5,), "took 5 ms", {}),
        ("%s v%d failed topic=%s", ("Fetch", 4, "t"), "Fetch v4 failed", {"topic": "t"}),
        ("listening at=%s:%d", ("here", 9092), "listening", {"at": "here:9092"}),
        ("stopped ms=%.1f", (1.25,), "stopped", {"ms": 1.25}),
        ("done peer=%s after %d tries", ("p", 2), "done after 2 tries", {"peer": "p"}),
        ("half is 50%% of=%s", ("it",), "half is 50%", {"of": "it"}),
        ("missing offset=%s", (None,), "missing", {"offset": None}),
        ("error error=%s", (ValueError("bad"),), "error", {"error": "bad"}),
        ("with a=%(a)s", ({"a": 1},), "with a=1", {}),
    ],
)
def test_a_message_is_split_into_event_and_fields(
    message: str, args: tuple[object, ...], event: str, fields: dict[str, object]
) -> None:
    assert split(record(message, *args)) == (event, fields)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a b", '"a b"'), ("", '""'), ('say "hi"', '"say \\"hi\\""'), ("a=b", '"a=b"'), ("x\ny", '"x\\ny"'), ("é", "é")],
)
def test_values_are_quoted_where_that_is_needed(value: str, shown: str) -> None:
    assert PairsFormatter().format(record("e key=%s", value)).endswith(f" event=e key={shown}")


@given(st.text())
def test_no_value_makes_a_line_of_its_own(value: str) -> None:
    for formatter in (PairsFormatter(), JsonFormatter()):
        assert len(formatter.format(record("e key=%s", value)).splitlines()) == 1


@given(st.text())
def test_json_gives_back_what_was_logged(value: str) -> None:
    assert json.loads(JsonFormatter().format(record("e key=%s", value)))["key"] == value


def test_an_exception_comes_with_its_traceback(written: Callable[..., io.StringIO]) -> None:
    stream = written()

    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("failed")

    assert "level=error logger=kohort.test event=failed\nTraceback" in stream.getvalue()
    assert stream.getvalue().endswith("ValueError: bad\n")


def test_json_has_the_traceback_within(written: Callable[..., io.StringIO]) -> None:
    stream = written(form="json")

    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("failed")

    assert json.loads(stream.getvalue())["traceback"].endswith("ValueError: bad")


def test_what_is_below_the_level_is_not_written(written: Callable[..., io.StringIO]) -> None:
    stream = written("warning")

    log.info("too little")
    log.warning("enough")

    assert "event=enough" in stream.getvalue()
    assert "too little" not in stream.getvalue()


def test_the_event_loop_logs_in_the_same_form(written: Callable[..., io.StringIO]) -> None:
    stream = written()

    logging.getLogger("asyncio").error("a task failed")

    assert 'logger=asyncio event="a task failed"' in stream.getvalue()
