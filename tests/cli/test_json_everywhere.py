"""Whatever a command shows in a table, a script can have with `--json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest
import typer

from kohort.cli import COMMANDS, _application

TABLES = re.compile(r"(\w+_)?tables?|\w*Table")
"""Names of what makes tables here, as functions use them."""


def commands() -> Iterator[tuple[str, Any]]:
    """All commands, with their names."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        below = getattr(command, "commands", None)
        if below is None:
            yield name, command
        for each, child in (below or {}).items():
            yield from walk(f"{name} {each}".strip(), child)

    return walk("", typer.main.get_command(_application([*COMMANDS])))


def names_in(code: CodeType) -> set[str]:
    """The names that a function and those in it use, of its module and of what it imports."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*map(names_in, inner))


def makes_a_table(function: Callable[..., Any]) -> bool:
    """Whether a function uses something that makes a table, or another of its module does that it uses."""
    assert isinstance(function, FunctionType)
    seen, waiting = set[FunctionType](), [function]
    while waiting:
        one = waiting.pop()
        seen.add(one)
        used = names_in(one.__code__)
        if any(map(TABLES.fullmatch, used)):
            return True
        own = (one.__globals__.get(name) for name in used)
        waiting += [
            each
            for each in own
            if isinstance(each, FunctionType) and each.__module__ == one.__module__ and each not in seen
        ]
    return False


COMMANDS_BY_NAME = dict(commands())
SHOWING = re.compile(r"(.* )?(list|describe|show|members|offsets|plan|check)|cluster|place|logdirs|doctor|perf .*")
"""Commands that show what is there; `wire show` prints a page, as it is in the protocol's documentation."""


def has_json(command: Any) -> bool:
    return any("--json" in each.opts for each in command.params)


def test_the_walk_finds_commands_and_their_tables() -> None:
    assert {"topics list", "cluster", "place", "wire batch", "groups reset-offsets"} <= COMMANDS_BY_NAME.keys()
    with_tables = {name for name, each in COMMANDS_BY_NAME.items() if makes_a_table(each.callback.__wrapped__)}
    assert {"topics list", "quotas list", "groups reset-offsets", "log check", "apps plan", "cluster"} <= with_tables
    assert not {"produce", "topics delete", "users set"} & with_tables


@pytest.mark.parametrize("name", COMMANDS_BY_NAME)
def test_a_table_is_there_as_json(name: str) -> None:
    command = COMMANDS_BY_NAME[name]
    shows = SHOWING.fullmatch(name) and name != "wire show"
    assert has_json(command) or not (shows or makes_a_table(command.callback.__wrapped__)), name
