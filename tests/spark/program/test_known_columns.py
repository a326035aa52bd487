"""Misspelt columns are refused where they are written, if the schema is declared; nothing that Spark takes is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark import (
    ProgramError,
    StreamsApp,
    avg,
    collect,
    collect_max,
    count,
    count_if,
    last,
    max_,
    session,
    sliding,
    sum_,
    unlimited,
    window,
)
from kohort.spark.program.aggregates import Aggregation
from kohort.spark.program.aggregates.base import Named
from kohort.spark.program.known_columns import check_reference, check_text, ddl_names

TIMES: Any = {"within": "1 hour", "grace": "0 seconds"}
SCHEMA = "id STRING, amount DECIMAL(10, 2), at TIMESTAMP, days INT, dates ARRAY<STRUCT<form: INT, mont: INT>>"


def orders(app: StreamsApp | None = None) -> Any:
    return (app or StreamsApp("app")).stream("orders", schema=SCHEMA, event_time="at")


def customers(of: Any, topic: str = "customers", *, everywhere: bool = False) -> Any:
    """A table of the application that a stream is of."""
    app = StreamsApp("app")
    app._graph = of._graph
    return (app.global_table if everywhere else app.table)(topic, schema="name STRING, city STRING", key="name")


def payments(of: Any) -> Any:
    app = StreamsApp("app")
    app._graph = of._graph
    return app.stream("payments", schema="order_id STRING, sum INT, amout INT", event_time="_timestamp")


def grouped() -> Any:
    return orders().group_by("id", window("at", "1 hour"))


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (
            lambda it: it.where("amout > 0"),
            "stream 'orders': where('amout > 0'): there is no column 'amout'; did you mean 'amount'?",
        ),
        (lambda it: it.select("id", "amuont AS x"), "select('amuont AS x'): there is no column 'amuont'"),
        (lambda it: it.with_columns(x="`amout` * 2"), "with_columns('`amout` * 2'): there is no column 'amout'"),
        (lambda it: it.branch(big="amout > 9", rest=None), "branch('amout > 9'): there is no column 'amout'"),
        (lambda it: it.group_by("idd", window("at", "1 hour")), "group_by 'idd': there is no column 'idd'"),
        (lambda it: it.dedupe("idd", within="1 hour"), "dedupe 'idd': there is no column 'idd'"),
        (lambda it: it.repartition("idd"), "repartition 'idd': there is no column 'idd'"),
        (lambda it: it.to("out", key="idd"), "to('out'): key 'idd': there is no column 'idd'"),
        (lambda it: it.with_columns(total="amount").where("totl > 0"), "did you mean 'total'?"),
        (lambda it: it.select("id", "amount AS total").peek(print).with_columns(x="totl + 1"), "There are id, total"),
        (
            lambda it: it.repartition("id").dedupe("id", within="1 hour").where("NOT (amout = '' OR id IN (1))"),
            "'amout'",
        ),
        (
            lambda it: it.group_by("id").aggregate("sums", n=count(), total=sum_("amout")),
            "stream 'orders': aggregate('sums', total=…): there is no column 'amout'; did you mean 'amount'?",
        ),
        (
            lambda it: it.group_by("id").aggregate("ns", n=count("amout")),
            "aggregate('ns', n=…): there is no column 'am",
        ),
        (lambda it: it.group_by("id").aggregate("avgs", n=avg("`amout`")), "there is no column 'amout'; did you mean"),
        (lambda it: it.group_by("id").aggregate("best", n=max_("day")), "no column 'day'; did you mean 'days'?"),
        (
            lambda it: it.group_by("id").aggregate("lasts", n=last("days", by="att")),
            "no column 'att'; did you mean 'at'?",
        ),
        (
            lambda it: it.group_by("id").aggregate("lists", n=collect("dayss", 3)),
            "no column 'dayss'; did you mean 'days'?",
        ),
        (
            lambda it: it.group_by("id").aggregate("tops", n=collect_max("id", "amout")),
            "no column 'amout'; did you mean",
        ),
        (
            lambda it: it.group_by("id").aggregate("some", n=sum_("amout", where="days > 1")),
            "there is no column 'amout'; did you mean 'amount'?",
        ),
        (
            lambda it: it.group_by("id").aggregate("some", n=count(where="amout > 1")),
            "aggregate('some', n=…): condition('amout > 1'): there is no column 'amout'; did you mean 'amount'?",
        ),
        (lambda it: it.group_by("id").aggregate("some", n=count_if("NOT amout = 1")), "there is no column 'amout'"),
        (
            lambda it: it.group_by("id", window("att", "1 hour")),
            "stream 'orders': group_by: window over 'att': there is no column 'att'; did you mean 'at'?",
        ),
        (lambda it: it.group_by("id", sliding("att", "1 hour", grace="0 ms")), "window over 'att': there is no column"),
        (lambda it: it.group_by("id", unlimited("att", "2026-01-01T00:00Z")), "window over 'att': there is no column"),
        (lambda it: it.group_by("id", session("att", "1 hour")), "session over 'att': there is no column 'att'"),
        (
            lambda it: it.group_by("id", session("at", gap_column="day")),
            "session with gap_column 'day': there is no column 'day'; did you mean 'days'?",
        ),
        (
            lambda it: it.join(customers(it), on={"idd": "name"}),
            "stream 'orders': join(on) 'idd': there is no column 'idd'; did you mean 'id'?",
        ),
        (
            lambda it: it.join(customers(it), on={"id": "nam"}),
            "table 'customers': join(on) 'nam': there is no column 'nam'; did you mean 'name'? There are name, city",
        ),
        (
            lambda it: it.join(customers(it, everywhere=True), on={"id": "nam"}),
            "global_table 'customers': join(on) 'nam'",
        ),
        (
            lambda it: it.join_as_of(customers(it), on={"idd": "name"}, history="1 day"),
            "stream 'orders': join(on) 'idd'",
        ),
        (
            lambda it: it.join_as_of(customers(it), on={"id": "nam"}, history="1 day"),
            "table 'customers': join(on) 'nam'",
        ),
        (lambda it: it.join(customers(it).where("city > ''"), on={"idd": "name"}), "stream 'orders': join(on) 'idd'"),
        (
            lambda it: customers(it).join(customers(it, "others"), on={"cty": "name"}),
            "table 'customers': join(on) 'cty'",
        ),
        (lambda it: customers(it).join(customers(it, "others"), on={"city": "nme"}), "table 'others': join(on) 'nme'"),
        (
            lambda it: it.join_stream(payments(it), on={"idd": "order_id"}, **TIMES),
            "stream 'orders': join_stream: on 'idd': there is no column 'idd'; did you mean 'id'?",
        ),
        (
            lambda it: it.join_stream(payments(it), on={"id": "orderid"}, **TIMES),
            "stream 'payments': join_stream: on 'orderid': there is no column 'orderid'; did you mean 'order_id'?",
        ),
        (
            lambda it: payments(it).join_stream(it, on="ids", **TIMES),
            "'ids'; did you mean 'id'? There are id, amount, at, days, dates (",
        ),
        (
            lambda it: payments(it).join_stream(it, on="amout", **TIMES),
            'days, dates. Where stream \'orders\' calls it otherwise, say on={"amout": "its column"}',
        ),
        (
            lambda it: it.join_stream(payments(it), on="amout", **TIMES),
            'days, dates. Where stream \'orders\' calls it otherwise, say on={"its column": "amout"}',
        ),
    ],
)
def test_a_misspelt_column_is_refused_where_it_is_written(write: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(said)) as caught:
        write(orders())
    assert re.search(r"test_known_columns\.py, line \d+\)$", str(caught.value))


@pytest.mark.parametrize(
    "given",
    [
        "AMOUNT", "dates.mont", "dates.dat", "*", "`amount`", " amout", "_offset", "nothing_like_it", "amout + 1",
        "amo.unt", "user", "current_user", "amout AS x",
    ],
)  # fmt: skip
def test_what_spark_may_take_in_an_aggregate_is_left_to_it(given: str) -> None:
    orders().select("*", "1 AS users", "2 AS current_users").group_by("id").aggregate(
        "some", n=max_(given), m=last(given)
    )


def test_what_only_spark_knows_of_an_aggregate_is_left_to_it() -> None:
    class Own(Aggregation):
        """One of a user's, of which nobody else knows what its attributes are."""

        of = "amout"

        def partial(self, name: str) -> Named:
            return []

        merge = partial

        def finish(self, name: str) -> Any:
            raise NotImplementedError

    grouped().aggregate("some", n=Own(), m=count(), b=count_if("filter(dates, dat -> dat.form > 1)"))


def test_sides_of_a_join_that_have_their_columns_are_joined() -> None:
    app = StreamsApp("app")
    it = orders(app)
    it.join(customers(it), on={"id": "name"}).join(customers(it, "others"))
    it.join(customers(it, "regions").where("city > ''"), on={"id": "name"})
    it.join_stream(payments(it), on={"id": "order_id"}, **TIMES)
    unknown = it.transform(lambda rows: rows)
    unknown.join(customers(it, "somewhere", everywhere=True), on={"idd": "name"})
    unknown.group_by("id", window("att", "1 hour")).aggregate("all", n=max_("amout"))


@pytest.mark.parametrize(
    "text",
    [
        "AMOUNT > 0 AND Id IS NOT NULL",
        "days > INTERVAL 1 day", "at > current_date AND at < DATE '2013-01-01' + interval 3 dayz()",
        "filter(dates, dat -> dat.form > 1)",
        "transform(dates, (amont, i) -> amont)",
        "get(dates, 0).mont = 1", "days::date", "id = 'amout' OR id = \"amout\" -- amout\n /* amout */",
        "CAST(id AS date)", "from_json(id, 'amout INT').amout AS amoun", "amount amout",
        "CAST(NULL AS ARRAY<STRUCT<amout: INT>>) IS NULL", "explode(map(id, amount)) AS (idd, amout)",
        "EXTRACT(day FROM at)", "make_interval(day => 1)", "CASE WHEN days = 1 THEN 1 ELSE 2 END",
        "id IN (SELECT amout FROM elsewhere)", "`days` + `amount`", "id LIKE 'x' ESCAPE '/'",
        "amount BETWEEN 1e3 AND 2D",
        "date(at) = current_timestamp", "_partition = 1 AND _topic = 'x'", "X'1F' = id", "nothing_like_it > 0",
        "CASE WHEN amount > 15 THEN 1 ELSE 0 END amount_high", "amount::INT amount_int", "dates[0] dat",
        "id IS NULL idd",
        "NULL amoun", "current_date dat", "days days_", "id::STRUCT<amout INT>", "id -- the AS ids",
        "replace(id, r'\\', ', amout, ')", "1 amout", "'x' amout", "amount > min_amount", "id = user AND days > 1.5e3",
        "id COLLATE UTF8_LCASE = 'x'", "timestampadd(HOUR, 1, at)", "(id) ids", "amount as amout", "unclosed('",
    ],
)  # fmt: skip
def test_what_spark_may_take_is_left_to_it(text: str) -> None:
    orders().where(text)
    orders().select("*", text)


@given(st.text(st.sampled_from("amount id'`\"()<>,.:->=*/ 1AS\n")), st.sampled_from([check_text, check_reference]))
def test_any_text_is_read(text: str, check: Callable[..., None]) -> None:
    try:
        check("where", text, ("amount", "id"), "stream 'orders'")
    except ProgramError as error:
        assert "did you mean" in str(error)


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        (SCHEMA, ("id", "amount", "at", "days", "dates")),
        ("a: INT, `b c` MAP<STRING, INT> NOT NULL COMMENT 'x, y INT'", ("a", "b c")),
        ("STRING", None),
        ("", None),
        ("a INT, <", None),
    ],
)
def test_names_of_ddl(schema: str, names: tuple[str, ...] | None) -> None:
    assert ddl_names(schema) == names


def test_what_a_select_leaves_out_is_still_there_for_a_condition() -> None:
    """As for Spark's filters."""
    kept = orders().select("id", "amount AS amounts")
    kept.where("amount > 1").branch(big="amount > 9", rest=None)
    with pytest.raises(ProgramError, match="'amount'; did you mean 'amounts'"):
        kept.select("amount")


def test_where_columns_are_not_known_nothing_is_refused() -> None:
    made = orders().transform(lambda rows: rows)
    made.where("amout > 0").group_by("idd")
    orders().select("id", "explode(dates)").where("idd > 0")
    StreamsApp("app").stream("lines", format="string").where("valu = ''")
    StreamsApp("app").stream("lines", schema=5).where("valu = ''")  # type: ignore[arg-type]


def test_a_column_as_an_attribute_or_by_its_name() -> None:
    advice = re.escape("columns are named in text, as .where(\"id IS NOT NULL\"), or by Spark's F.col('id')")
    with pytest.raises(AttributeError, match=f"Stream has no 'id': {advice}"):
        _ = orders().id
    with pytest.raises(TypeError, match=advice):
        orders()["id"]
    with pytest.raises(AttributeError, match="it has transform, where"):
        _ = orders().idd
