"""Misspelt columns are refused where they are written, if the schema is declared; nothing that Spark takes is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark import ProgramError, StreamsApp, window
from kohort.spark.program.known_columns import check_text, ddl_names

SCHEMA = "id STRING, amount DECIMAL(10, 2), at TIMESTAMP, days INT, dates ARRAY<STRUCT<form: INT, mont: INT>>"


def orders() -> Any:
    return StreamsApp("app").stream("orders", schema=SCHEMA, event_time="at")


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
    ],
)
def test_a_misspelt_column_is_refused_where_it_is_written(write: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(ProgramError, match=re.escape(said)) as caught:
        write(orders())
    assert re.search(r"test_known_columns\.py, line \d+\)$", str(caught.value))


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


@given(st.text(st.sampled_from("amount id'`\"()<>,.:->=*/ 1AS\n")))
def test_any_text_is_read(text: str) -> None:
    try:
        check_text("where", text, ("amount", "id"), "stream 'orders'")
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
