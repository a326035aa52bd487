from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.program.compiled import Route
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.url_keys import (
    KeyTextError,
    parse_bound,
    parse_group,
    parse_key,
    parse_key_of_all_windows,
    prefix_range,
    utc_text,
)
from tests.spark.queries.fakes import AIRLINES, DELAYS, ROUTES

STORED = b'{"window":"2013-01-01T05:00:00.000Z","origin":"JFK"}'


@pytest.mark.parametrize(
    "text",
    [
        "JFK@2013-01-01T05:00:00Z",
        "JFK@2013-01-01T05",
        "JFK@2013-01-01T05:00:00.000Z",
        "JFK@2013-01-01 06:00:00+01:00",
        STORED.decode(),
        '{"origin": "JFK", "window": "2013-01-01T05:00"}',
    ],
)
def test_forms_of_a_key(text: str) -> None:
    assert parse_key(DELAYS, text) == (STORED, b'{"origin":"JFK"}')


def test_several_columns_and_their_types() -> None:
    assert parse_key(ROUTES, "JFK,12").stored == b'{"origin":"JFK","number":12}'
    assert parse_key(ROUTES, '{"number":12,"origin":null}').stored == b'{"origin":null,"number":12}'


def test_numbers_keep_their_text() -> None:
    info = StoreInfo("s", (("price", "double"), ("good", "boolean")), False, True, "0")
    assert parse_key(info, "1.50,true").stored == b'{"price":1.50,"good":true}'
    assert parse_key(info, '{"price":1.0E10,"good":false}').stored == b'{"price":1.0E10,"good":false}'


def test_times_among_the_columns() -> None:
    info = StoreInfo("s", (("at", "timestamp"), ("local", "timestamp_ntz"), ("day", "date")), False, True, "0")
    stored = b'{"at":"2013-01-01T04:00:00.250Z","local":"2013-01-01T05:00:00.000","day":"2013-01-01"}'
    assert parse_key(info, "2013-01-01T05:00:00.25+01:00,2013-01-01T05,2013-01-01").stored == stored
    assert (
        parse_key(info, '{"day":"2013-01-01","at":"2013-01-01T04:00:00.25","local":"2013-01-01 05"}').stored == stored
    )
    assert parse_key(info, "x,y,z").stored == b'{"at":"x","local":"y","day":"z"}'


def test_times_have_microseconds_where_there_are_any_and_where_partitions_follow_from_them() -> None:
    """Windows have ms; records are partitioned by the keys of tables, as other writers do, too."""
    info = StoreInfo("s", (("at", "timestamp"), ("n", "int")), False, True, "0", Route.JSON, ("at",))
    stored, route = parse_key(info, "2013-01-01T05:00:00Z,1")
    assert stored == b'{"at":"2013-01-01T05:00:00.000Z","n":1}'
    assert route == b'{"at":"2013-01-01T05:00:00.000000Z"}'
    assert parse_key(info, "2013-01-01T05:00:00.000001Z,1").stored == b'{"at":"2013-01-01T05:00:00.000001Z","n":1}'
    table = replace(info, micros=True)
    assert parse_key(table, "2013-01-01T05:00:00Z,1").stored == b'{"at":"2013-01-01T05:00:00.000000Z","n":1}'


def test_text_keys() -> None:
    assert parse_key(AIRLINES, "U{A@,").stored == b"U{A@,"
    assert parse_key(AIRLINES, "\udcff").stored == b"\xff"  # any bytes, as URLs can have them


def test_awkward_values_are_escaped_as_spark_does() -> None:
    stored = parse_key(DELAYS, 'a"b\\c\n\x01/é@x@2013-01-01').stored
    assert stored == '{"window":"2013-01-01T00:00:00.000Z","origin":"a\\"b\\\\c\\n\\u0001/é@x"}'.encode()


def test_a_group_without_columns() -> None:
    everything = StoreInfo("s", (), True, True, "0", Route.JSON, (), True)
    assert parse_key(everything, "@2013-01-01") == (b'{"window":"2013-01-01T00:00:00.000Z"}', b"{}")
    assert parse_key_of_all_windows(everything, "").stored == b"}"
    assert parse_key(StoreInfo("s", (), False, True, "0"), "").stored == b"{}"


def test_a_route_has_the_names_of_the_topics_keys() -> None:
    renamed = replace(ROUTES, route_names=("airport", "flight"))
    key = parse_key(renamed, "JFK,12")
    assert key == (b'{"origin":"JFK","number":12}', b'{"airport":"JFK","flight":12}')


def test_routes() -> None:
    def info(kind: str, *by: str, route: Route = Route.TEXT) -> StoreInfo:
        return StoreInfo("s", (("a", kind), ("b", "int")), False, True, "0", route, by, True)

    assert parse_key(info("string", "a"), "x,1").route == b"x"
    assert parse_key(info("string", "b"), "x,1").route == b"1"
    assert parse_key(info("string", "b", "a"), "x,1").route == b'{"b":1,"a":"x"}'
    assert parse_key(info("string", "b", route=Route.JSON), "x,1").route == b'{"b":1}'
    assert parse_key(info("timestamp", "a"), "2013-01-01,1").route is None  # written otherwise by cast than by to_json
    assert parse_key(info("string", "a"), '{"a":null,"b":1}').route is None
    assert parse_key(info("string", "c"), "x,1").route is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("JFK", "start is missing"),
        ("JFK@noon", "'noon' is no time"),
        ("{", "not JSON"),
        ('{"window":"2013-01-01","origin":"JFK","x":1}', "other fields"),
        ('{"window":"2013-01-01"}', "other fields"),
        ('{"window":5,"origin":"JFK"}', "no time"),
        ('{"window":"2013-01-01","origin":"a","origin":"b"}', "comes twice"),
        ('{"window":"2013-01-01","origin":NaN}', "NaN"),
        ('{"window":"2013-01-01","origin":' + "[" * 100_000, "nested too deep"),
        ("\udcff@2013-01-01", "not Unicode"),
    ],
)
def test_texts_that_are_no_key(text: str, why: str) -> None:
    with pytest.raises(KeyTextError, match=why) as caught:
        parse_key(DELAYS, text)
    assert "origin@2013-01-01T05:00:00Z, or {" in str(caught.value)


@pytest.mark.parametrize(("text", "why"), [("JFK", "1 values for 2"), ("JFK,x", "is int, which 'x' is not")])
def test_texts_that_are_no_key_of_several_columns(text: str, why: str) -> None:
    with pytest.raises(KeyTextError, match=why):
        parse_key(ROUTES, text)


def test_bounds() -> None:
    assert parse_bound(DELAYS, "2013-01-01") == b'{"window":"2013-01-01T00:00:00.000Z"'
    assert parse_bound(DELAYS, "JFK@2013-01-01T05") == STORED
    assert parse_bound(DELAYS, '{"window":"2013') == b'{"window":"2013'
    assert parse_bound(AIRLINES, "UA") == b"UA"


def test_prefixes() -> None:
    assert prefix_range(DELAYS, "2013-01-01T") == (b'{"window":"2013-01-01T', b'{"window":"2013-01-01U')
    assert prefix_range(ROUTES, "J") == (b'{"origin":"J', b'{"origin":"K')
    assert prefix_range(AIRLINES, "\udcff") == (b"\xff", None)
    assert prefix_range(AIRLINES, "a\udcff") == (b"a\xff", b"b")


def test_times() -> None:
    assert utc_text("2013-01-01T05:00:00.123456") == "2013-01-01T05:00:00.123Z"
    assert utc_text("0001-01-01T00:00:00+23:59") is None  # before there are years
    assert utc_text("") is None


@given(st.text().filter(lambda text: not text.startswith("{")))
def test_any_text_is_a_key(text: str) -> None:
    """The short form and the JSON of any value give the same key, which is JSON with this value."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    key = parse_key(DELAYS, f"{text}@2013-01-01")
    assert json.loads(key.stored)["origin"] == text
    assert parse_key(DELAYS, key.stored.decode()) == key
    assert key.stored.endswith(parse_key_of_all_windows(DELAYS, text).stored)


PAGES = StoreInfo(
    "pages", (("user", "string"), ("n", "int"), ("page", "string")), False, True, "0", Route.TEXT, ("user",), group=2
)


@pytest.mark.parametrize("text", ["ann,1", '{"n": 1, "user": "ann"}'])
def test_the_rows_of_a_group(text: str) -> None:
    start, end, route = parse_group(PAGES, text)
    assert (start, route) == (b'{"user":"ann","n":1,', b"ann")
    keys = [
        b'{"user":"ann","n":1,"page":"a"}',
        b'{"user":"ann","n":12,"page":"a"}',
        b'{"user":"anna","n":1,"page":"a"}',
    ]
    assert [start <= key < end for key in keys] == [True, False, False]


def test_groups_of_stores_without_such() -> None:
    with pytest.raises(KeyTextError, match="its groups have one row each"):
        parse_group(AIRLINES, "UA")
    with pytest.raises(KeyTextError, match="1 values for 2 columns"):
        parse_group(PAGES, "ann")
