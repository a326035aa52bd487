from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from kohort.console.live import Cell, Table, View, apply, difference, whole

WORDS = st.text(max_size=3)
CELL = st.builds(Cell, WORDS, WORDS, st.sampled_from(["", "good", "bad"]), WORDS)
CELLS = st.lists(CELL, min_size=2, max_size=2).map(tuple)
TABLES = st.lists(st.tuples(st.sampled_from("abcdef"), CELLS), max_size=6).map(lambda rows: Table(dict(rows)))


@st.composite
def views(draw: st.DrawFn) -> View:
    """Views with the same texts and tables, as all of one page are."""
    return View({name: draw(WORDS) for name in ("lag", "state")}, {name: draw(TABLES) for name in ("t", "u")})


def order(view: View) -> dict[str, list[str]]:
    return {name: list(table.rows) for name, table in view.tables.items()}


@given(views(), views())
def test_a_page_comes_to_what_the_server_shows(before: View, after: View) -> None:
    change = difference(before, after)
    if change is None:
        assert (before, order(before)) == (after, order(after))
        return
    come_to = apply(before, json.loads(json.dumps(change)))
    assert (come_to, order(come_to)) == (after, order(after))


@given(views(), views())
def test_all_of_a_view_brings_any_page_there(before: View, after: View) -> None:
    come_to = apply(before, json.loads(json.dumps(whole(after))))
    assert (come_to, order(come_to)) == (after, order(after))


@given(views())
def test_nothing_is_said_where_nothing_changed(view: View) -> None:
    assert difference(view, view) is None


def test_only_what_changed_is_said() -> None:
    rows = {str(at): (Cell(str(at)), Cell("1")) for at in range(1_000)}
    before = View({"lag": "5", "state": "Stable"}, {"groups": Table(rows)})
    after = View({"lag": "6", "state": "Stable"}, {"groups": Table(rows | {"7": (Cell("7"), Cell("2"))})})
    assert difference(before, after) == {
        "texts": {"lag": "6"},
        "tables": {"groups": {"rows": {"7": [["7"], ["2"]]}}},
    }
