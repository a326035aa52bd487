"""Tables in narrow and wide terminals."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from kohort.cli.client.tables import table

IDS = ("0f8b3c52-6c1c-4a5f-9d1e-1b2f3a4c5d6e", "0f8b3c52-6c1c-4a5f-9d1e-1b2f3a4c5d6f")


class Screen(io.StringIO):
    """A terminal's file."""

    def isatty(self) -> bool:
        return True


def shown(made: Table, width: int, *, terminal: bool = True, colours: bool | None = None) -> list[str]:
    file = Screen() if terminal else io.StringIO()
    console = Console(file=file, width=width, force_terminal=colours, color_system=None, legacy_windows=False)
    console.print(made)
    lines = file.getvalue().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    return [line.rstrip() for line in lines if line.strip() and "──" not in line]


def members() -> Table:
    rows = [(each, "kohort", "0: 0-3; 1: 0-3", 1_200_000) for each in IDS]
    return table(("Member", "Client", "Active", ">Epoch"), rows, title="A group")


def test_what_fits_is_as_it_is() -> None:
    assert shown(members(), 100) == [
        "A group",
        " Member                                 Client   Active               Epoch",
        f" {IDS[0]}   kohort   0: 0-3; 1: 0-3   1,200,000",
        f" {IDS[1]}   kohort   0: 0-3; 1: 0-3   1,200,000",
    ]


def test_names_are_cut_in_the_middle_before_anything_wraps() -> None:
    """So that both ends tell them apart; numbers are never cut."""
    assert shown(members(), 60) == [
        "A group",
        " Member                 Client   Active               Epoch",
        " 0f8b3c52-6…f3a4c5d6e   kohort   0: 0-3; 1: 0-3   1,200,000",
        " 0f8b3c52-6…f3a4c5d6f   kohort   0: 0-3; 1: 0-3   1,200,000",
    ]


def test_rows_are_stacked_where_names_would_be_cut_too_short() -> None:
    assert shown(members(), 30) == [
        "A group",
        f"Member {IDS[0][:23]}",
        f"       {IDS[0][23:]}",
        "  Client kohort",
        "  Active 0: 0-3; 1: 0-3",
        "  Epoch  1,200,000",
        f"Member {IDS[1][:23]}",
        f"       {IDS[1][23:]}",
        "  Client kohort",
        "  Active 0: 0-3; 1: 0-3",
        "  Epoch  1,200,000",
    ]


def test_words_wrap_before_rows_are_stacked() -> None:
    made = table(("Topic", "Settings"), [("orders", "cleanup.policy=compact and several others that are set")])
    assert shown(made, 44) == [
        " Topic    Settings",
        " orders   cleanup.policy=compact and",
        "          several others that are set",
    ]


def test_a_first_column_without_a_heading_has_none_in_stacked_rows() -> None:
    made = table(("", ">Records"), [("everything", 7)])
    assert shown(made, 14) == ["everything", "  Records 7"]


def test_names_are_cut_by_the_cells_that_they_take() -> None:
    """Characters of some scripts are two cells wide."""
    made = table(("Topic", ">Records"), [("注文" * 10, 7), ("orders-of-" * 4, 8)])
    assert shown(made, 32) == [
        " Topic                  Records",
        " 注文注文注…注文注文          7",
        " orders-of-…rders-of-         8",
    ]


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("colours", [None, True])
def test_in_a_pipe_nothing_is_cut(width: int, colours: bool | None) -> None:
    """Whatever COLUMNS and FORCE_COLOR say."""
    name = "n" * 200
    made = table(("Name", "Other"), [(name, "x")])
    lines = shown(made, width, terminal=False, colours=colours)
    assert "".join(line.split()[0] for line in lines[1:]) == name
