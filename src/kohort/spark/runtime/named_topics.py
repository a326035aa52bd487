"""Rows whose topics a column names: which go where, and what becomes of those to a topic that isn't there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.epoch import HEADERS_SENT, TOPIC_SENT
from kohort.spark.errors import ApplicationError
from kohort.spark.letter_headers import reason_header
from kohort.spark.runtime.subtopology_plan import Unreadable

_SHOWN = 100
"""Characters of a topic's name in a message."""


@dataclass(frozen=True)
class NamedRows:
    """Rows with `TOPIC_SENT`, beside columns for `Producer.send_table`.

    Attributes:
        unknown: what becomes of those to a topic that isn't there.
    """

    rows: pa.Table
    unknown: Unreadable


class Addressed(NamedTuple):
    """Tables by topic, and how many rows were to go to topics that aren't there, and didn't stop the application."""

    sent: list[tuple[str, pa.Table]]
    unknown: int


def named_topics(named: Sequence[NamedRows]) -> frozenset[str]:
    """The topics that rows name."""
    names = {name for each in named for name in pc.unique(each.rows[TOPIC_SENT]).to_pylist()}
    return frozenset(names - {None})


def addressed(named: Sequence[NamedRows], missing: Collection[str]) -> Addressed:
    """The rows by topic, in their order, dead letters among them.

    Args:
        missing: those of `named_topics` that aren't there.

    Raises:
        ApplicationError: a row's topic isn't there, or null, and the application is to stop then.
    """
    sent: list[tuple[str, pa.Table]] = []
    unknown = 0
    for each in named:
        topics = each.rows[TOPIC_SENT]
        rows = each.rows.drop_columns([TOPIC_SENT])
        for topic in sorted(pc.unique(topics).to_pylist(), key=lambda name: (name is None, name)):
            mine = rows.filter(pc.is_null(topics) if topic is None else pc.equal(topics, topic))
            if topic is not None and topic not in missing:
                sent.append((topic, mine))
                continue
            unknown += mine.num_rows
            if each.unknown.stop:
                raise ApplicationError(_why_stopped(topic))
            if each.unknown.dead_letters is not None:
                sent.append((each.unknown.dead_letters, _with_reason(mine, topic)))
    return Addressed(sent, unknown)


def _why_stopped(topic: str | None) -> str:
    remedy = "To go past such rows say on_error=Drop() or DeadLetter(…) for the stream"
    if topic is None:
        return f"a row can't be written: {_reason(topic)}. {remedy}"
    create = f"Create it: kohort topics create {_short(topic)} --partitions N"
    return f"a row can't be written: {_reason(topic)}. {create}. {remedy}"


def _reason(topic: str | None) -> str:
    if topic is None:
        return "the column that names its topic is null"
    return f"there is no topic {_short(topic)!r}, which its column names"


def _short(name: str) -> str:
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def _with_reason(rows: pa.Table, topic: str | None) -> pa.Table:
    """Dead letters: the rows as they would have been written, with the reason in a header more."""
    kind = RECORD_SCHEMA.field("headers").type
    reason = reason_header(_reason(topic))
    there = rows[HEADERS_SENT].to_pylist() if HEADERS_SENT in rows.column_names else [[]] * rows.num_rows
    headers = pa.array([[*each, reason] for each in there], kind)
    others = rows.drop_columns([HEADERS_SENT]) if HEADERS_SENT in rows.column_names else rows
    return others.append_column(HEADERS_SENT, headers)
