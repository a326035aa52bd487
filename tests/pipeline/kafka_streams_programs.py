"""The Java programs of docs/coming-from-kafka-streams.md, in Kafka Streams' own test driver, with rows as ours."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tests.interop.java import build
from tests.interop.java.jvm import Jvm
from tests.pages import blocks, under

Row = dict[str, Any]

PAGE: Final = "docs/coming-from-kafka-streams.md"
TEMPLATE: Final = build.HERE / "coming_from" / "Programs.java"
"""A class with a hole for each program: a comment that is its heading."""

_KEYS: Final = {"left": "id", "right": "id", **dict.fromkeys(("profiles", "views", "events", "clicks"), "user")}
_TIMES: Final = ("at", "then")
_CLASSES: Final = {"profiles": "Profile", "views": "View", "events": "Event", "clicks": "Click"}
_COLUMNS: Final = {"views-by-region": ("region", "n"), "alerts": ("user", "n"), "visits": ("user", "clicks")}


def source() -> str:
    """The class, with the page's blocks in it.

    Raises:
        AssertionError: a block has no hole.
        LookupError: a hole has no block.
    """
    text = TEMPLATE.read_text()
    headings = re.findall('case "(.+)"', text)
    assert len(headings) == sum(each.language == "java" for each in blocks(PAGE))
    for heading in headings:
        hole = f"// {heading}\n"
        assert text.count(hole) == 1, heading
        text = text.replace(hole, under(PAGE, heading, "java"))
    return text


class Programs(Jvm):
    """A JVM that compiles the page's Java, and runs its programs.

    Args:
        directory: where the class is written to.
    """

    def __init__(self, directory: Path) -> None:
        file = directory / TEMPLATE.name
        file.write_text(source())
        super().__init__("witness", str(file), flags=["-Dorg.slf4j.simpleLogger.defaultLogLevel=error"])


class Driver:
    """A program of Kafka Streams, as far as tests need a `kohort.spark.testing.TestDriver`.

    Args:
        programs: what runs it.
        heading: which of the page's programs.
    """

    def __init__(self, programs: Programs, heading: str) -> None:
        self._programs, self._heading = programs, heading
        self._given: list[Row] = []
        self._told = 0

    def pipe(self, topic: str, rows: Iterable[Row | str], *, step: bool = True) -> None:
        """Hands in rows; a step is each record's, here."""
        self._given += [_record(topic, {"line": row} if isinstance(row, str) else row) for row in rows]

    def output(self, topic: str) -> list[Row]:
        """What came since the last time: the program runs anew, with all rows so far."""
        every = self._programs.ask({"program": self._heading, "records": self._given}, 60)
        rows = [_row(topic, made["key"], base64.b64decode(made["value"])) for made in every if made["topic"] == topic]
        new, self._told = rows[self._told :], len(rows)
        return new


def _record(topic: str, row: Row) -> Row:
    times = [row[name].timestamp() for name in _TIMES if name in row]
    columns = {name: value for name, value in row.items() if name not in _TIMES}
    if topic == "lines":
        value = columns["line"].encode()
    elif topic == "left":
        value = struct.pack(">q", columns["l"])
    elif topic == "right":
        value = struct.pack(">d", columns["r"])
    else:
        value = json.dumps({"@type": _CLASSES[topic], **columns}).encode()
    return {
        "topic": topic, "key": row.get(_KEYS.get(topic, "")), "value": base64.b64encode(value).decode(),
        "at": round(1000 * sum(times)),
    }  # fmt: skip


def _row(topic: str, key: str, value: bytes) -> Row:
    if topic == "joined":
        left, right = value.decode().split(" and ")
        return {"id": key, "l": int(left), "r": None if right == "null" else float(right)}
    group, number = _COLUMNS.get(topic, ("word", "n"))
    name, _, start = key.partition("@")
    row = {group: name, number: int.from_bytes(value, "big")}
    return row | {"window": datetime.fromtimestamp(int(start) / 1000, UTC).isoformat()} if start else row
