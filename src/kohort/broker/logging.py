"""Structured logs: one line an event, on standard error, as key=value pairs or as JSON.

A message is an event followed by fields, as in `log.info("topic created topic=%s partitions=%d", name, count)`. A word
with an equals sign and an argument is a field, which keeps its type in JSON; the rest is the event.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TextIO

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")

_FIELD: Final = re.compile(r"(?:^|\s)([a-z][a-z0-9_]*)=(\S*%\S+)")
_ARGUMENT: Final = re.compile(r"%[-+#0-9.]*[sdirfgx]")
_PLAIN: Final = re.compile(r"[^\s\"=\x00-\x1f\x7f-\x9f]+")
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def set_up_logging(level: str = "info", format: str = "text", stream: TextIO | None = None) -> None:  # noqa: A002
    """Configures Kohort's loggers to write to a stream.

    Args:
        level: the lowest of `LEVELS` that is written.
        format: one of `FORMATS`.
        stream: standard error by default.
    """
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonFormatter() if format == "json" else PairsFormatter())
    logger = logging.getLogger("kohort")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    # The event loop logs in the same format.
    loop = logging.getLogger("asyncio")
    loop.handlers[:] = [handler]
    loop.propagate = False


class PairsFormatter(logging.Formatter):
    """A line of key=value pairs, quoted where needed; a traceback follows on separate lines."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = split(record)
        pairs = {
            "time": _time(record.created), "level": record.levelname.lower(), "logger": record.name, "event": event,
        } | fields  # fmt: skip
        line = " ".join(f"{key}={_pair_value(value)}" for key, value in pairs.items())
        error = _traceback(record)
        return f"{line}\n{error}" if error else line


class JsonFormatter(logging.Formatter):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        event, fields = split(record)
        values: dict[str, Any] = {
            "time": _time(record.created), "level": record.levelname.lower(), "logger": record.name, "event": event,
        } | fields  # fmt: skip
        error = _traceback(record)
        if error:
            values["traceback"] = error
        return json.dumps(values, default=str, ensure_ascii=True)


def split(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """Splits a record into its event and its fields."""
    template, args = record.msg, record.args
    if not isinstance(template, str) or not isinstance(args, tuple) or not args:
        return record.getMessage(), {}
    fields: dict[str, Any] = {}
    event: list[str] = []
    rest = iter(args)
    position = 0
    for field in _FIELD.finditer(template):
        name, form = field.groups()
        event.append(_filled(template[position : field.start()], rest))
        fields[name] = _field_value(next(rest)) if _ARGUMENT.fullmatch(form) else _filled(form, rest)
        position = field.end()
    event.append(_filled(template[position:], rest))
    return "".join(event).strip(), fields


def _filled(form: str, args: Iterator[object]) -> str:
    """A piece of a template with as many arguments as it takes."""
    count = len(_ARGUMENT.findall(form.replace("%%", "")))
    return form % tuple(islice(args, count))


def _field_value(value: object) -> Any:
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def _pair_value(value: object) -> str:
    text = "" if value is None else str(value)
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + _UNSAFE.sub(lambda char: f"\\u{ord(char[0]):04x}", escaped) + '"'


def _time(seconds: float) -> str:
    """The time in UTC, to the ms."""
    seconds, milliseconds = divmod(int(seconds * 1000), 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03d}Z"


def _traceback(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return "".join(traceback.format_exception(*record.exc_info)).rstrip()
