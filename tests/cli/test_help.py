"""What `kohort --help` says is what the documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kohort.cli import COMMANDS, _help

from .support import invoke
from .test_json_everywhere import COMMANDS_BY_NAME

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_each_command_of_the_page_is_there() -> None:
    assert {*re.findall(r"^## kohort (\S+)$", PAGE, re.MULTILINE)} <= COMMANDS.keys()


@pytest.mark.parametrize(
    ("command", "said"), [("produce", "Parquet"), ("topics", "delete the oldest records"), ("consume", "Parquet")]
)
def test_what_a_command_does_is_said_in_its_line(command: str, said: str) -> None:
    (line,) = re.findall(rf"^  {command} .*$", _help(False), re.MULTILINE)
    assert said in line


@pytest.mark.parametrize("group", ["topics", "groups", "configs", "apps"])
def test_sub_commands_are_those_of_the_page(group: str) -> None:
    documented = {*re.findall(rf"`{group} ([a-z-]+)", PAGE)}
    listed = {*re.findall(r"^\W+([a-z-]+) {2,}\S", invoke(group, "--help").stdout, re.MULTILINE)}
    assert documented and documented <= listed, documented - listed


@pytest.mark.parametrize("name", COMMANDS_BY_NAME)
def test_what_is_wanted_is_said_in_words(name: str) -> None:
    """No type of Python's stands for a value, and what may be given again says so."""
    command = COMMANDS_BY_NAME[name]
    for each in command.params:
        if not getattr(each, "is_flag", False):
            assert each.metavar, each.name
        if each.nargs == -1:
            assert each.metavar.endswith("…"), each.name
        if getattr(each, "multiple", False):
            assert "Repeatable" in each.help, each.name
    assert all("\n" not in paragraph for paragraph in command.help.split("\n\n"))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--max", "--max-messages"),
        ("--limit", "--max-messages"),
        ("--beginning", "--from-beginning"),
        ("--qiet", "--quiet"),
    ],
)
def test_an_option_that_is_not_there_has_the_one_suggested_that_is_meant(given: str, meant: str) -> None:
    said = " ".join(invoke("consume", "words", given).stderr.split())
    assert f"No such option: {given} (Possible options: {meant})" in said


@pytest.mark.parametrize("command", [("console",), ("groups", "describe"), ("perf", "e2e")])
def test_no_name_is_cut_off_in_a_narrow_terminal(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    assert not re.search(r"\$\w+…", invoke(*command, "--help").stdout)
