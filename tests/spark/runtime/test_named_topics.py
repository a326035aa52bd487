"""Rows whose topics a column names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.errors import ApplicationError
from kohort.spark.runtime.named_topics import NamedRows, addressed, named_topics
from kohort.spark.runtime.subtopology_plan import Unreadable

DROP = Unreadable(stop=False)


def rows(unknown: Unreadable, *topics: str | None) -> NamedRows:
    values = [f"{number}".encode() for number in range(len(topics))]
    return NamedRows(pa.table({"key": values, "value": values, "topic": pa.array(topics, pa.string())}), unknown)


def values(tables: list[tuple[str, pa.Table]]) -> list[tuple[str, list[bytes]]]:
    return [(topic, table["value"].to_pylist()) for topic, table in tables]


def test_rows_go_to_their_topics_in_their_order() -> None:
    named = [rows(Unreadable(), "b", "a", "b"), rows(Unreadable(), "a")]
    assert named_topics(named) == {"a", "b"}
    found = addressed(named, ())
    assert values(found.sent) == [("a", [b"1"]), ("b", [b"0", b"2"]), ("a", [b"0"])]
    assert found.unknown == 0
    assert found.sent[0][1].column_names == ["key", "value"]


def test_rows_to_no_topic_are_left_out_and_counted() -> None:
    named = [rows(DROP, "a", None, "b", "b")]
    assert named_topics(named) == {"a", "b"}
    found = addressed(named, {"b"})
    assert values(found.sent) == [("a", [b"0"])]
    assert found.unknown == 3


@pytest.mark.parametrize("with_headers", [True, False])
def test_rows_to_no_topic_become_dead_letters(with_headers: bool) -> None:
    named = rows(Unreadable(stop=False, dead_letters="dead"), "b", None)
    if with_headers:
        kind = RECORD_SCHEMA.field("headers").type
        headers = pa.array([[{"key": "own", "value": b"1"}], []], kind)
        named = NamedRows(named.rows.append_column("headers", headers), named.unknown)
    (first_topic, first), (_, second) = addressed([named], {"b"}).sent
    assert (first_topic, first["value"].to_pylist()) == ("dead", [b"0"])
    reason = {"key": "__streams.errors.message", "value": b"there is no topic 'b', which its column names"}
    assert first["headers"].to_pylist() == [[*([{"key": "own", "value": b"1"}] if with_headers else []), reason]]
    assert second["headers"].to_pylist()[0][-1]["value"] == b"the column that names its topic is null"


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("late flights", r"there is no topic 'late flights', which its column names\. Create it: kohort topics create"),
        (None, r"can't be written: the column that names its topic is null\. To go past such rows say on_error=Drop"),
    ],
)
def test_the_application_stops_at_a_row_to_no_topic(topic: str | None, why: str) -> None:
    with pytest.raises(ApplicationError, match=why):
        addressed([rows(Unreadable(), "a", topic)], {"late flights"})
