"""The code in the reference, which is made of docstrings and of what `--help` says: it is right, or runs."""

from __future__ import annotations

import ast
import asyncio
import builtins
import contextlib
import inspect
import os
import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import confluent_kafka
import pytest
import typer

from kohort.cli import COMMANDS, _application
from kohort.client import Admin
from kohort.client.admin import ConfigResource, ResourceType
from kohort.spark.program.settings import AppSettings
from kohort.testing import Broker, Filling
from tests.pages import ROOT, Block, parse
from website import commands
from website.python import PACKAGES, exported

BESIDE: Final = {
    "kohort.client.administration.groups": ("Groups",),
    "kohort.client.administration.topics": ("Topics",),
    "kohort.client.streams_member": ("StreamsMember",),
    "kohort.spark.datasource.source": ("KohortDataSource",),
    "kohort.spark.monitoring.telemetry": ("OpenTelemetry",),
    "kohort.spark.program.queues": ("Queue",),
    "kohort.spark.running_app": ("RunningApp",),
    "kohort.testing.plugin": (),
}
"""What programs get hold of, too, though no page of the reference has it: modules, and what is in them."""

TEXT: Final = {
    ("kohort.coordinator.placement", "optimal_assignor, sticky_assignor "): "modules beside what is in them",
    ("kohort.testing.plugin", "[tool.pytest.ini_options]"): "a setting of pytest",
}
"""Blocks that aren't Python, by how they begin, and what they are."""

GIVEN: Final = frozenset({
    "addresses", "app", "bids", "by_auction", "by_hour", "by_origin", "clicks", "counts", "customers", "delays",
    "flights", "jobs", "orders", "paid", "payments", "people", "rates", "readings", "resized", "stream",
})  # fmt: skip
"""What a reader of the examples has said before: an application, its streams and tables, a function."""

OF_OTHERS: Final = frozenset(
    ("DataFrame", "F", "confluent_kafka", "df", "pa", "prior", "pytest", "rows", "spark", "state")
)
"""Other libraries and what is theirs, with methods that aren't looked at."""

WITHOUT_SPARK: Final = [each for each in (*PACKAGES, *BESIDE) if not each.startswith("kohort.spark")]
NOT_RUN: Final = {
    ("kohort.client.streams_member", "topology = "): "goes on: tests/test_docs.py runs that of docs/streams-member.md",
    ("kohort.testing", "with KohortContainer("): "a process of its own: tests/testing/test_container.py starts some",
    ("kohort.testing.plugin", "@pytest.mark.kohort("): "a test with a fixture: tests/testing/test_plugin.py has such",
}
"""Examples without Spark that aren't run, by how they begin, and why."""


class Example(NamedTuple):
    """A block of code in a docstring.

    Attributes:
        package: what is imported, by whose reader it is seen.
        home: the module that it stands in.
        block: where, and what.
    """

    package: str
    home: ModuleType
    block: Block


def _docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Those of a module, class or function; of the public parts of a class, and of its attributes, too."""
    for at, each in enumerate(getattr(node, "body", ())):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            if at == 0 or isinstance(node, (ast.Module, ast.ClassDef)):
                yield each.lineno, each.value.value
        elif isinstance(node, ast.ClassDef) and re.match(r"[a-zA-Z]|__init__$", getattr(each, "name", "")):
            yield from _docstrings(each)


@cache
def examples_of(package: str) -> tuple[Example, ...]:
    """The blocks of a package, and of what it exports; of classes, also those of what they inherit."""
    home = import_module(package)
    found = list(_examples(package, home, ast.parse(inspect.getsource(home)), 0))
    names = BESIDE[package] if package in BESIDE else exported(package)
    for thing in (inspect.unwrap(getattr(home, name)) for name in names):
        several = inspect.getmro(thing) if inspect.isclass(thing) else [thing] if inspect.isfunction(thing) else []
        for each in several:
            if each.__module__.startswith("kohort."):
                source, start = inspect.getsourcelines(each)
                (tree,) = ast.parse(textwrap.dedent("".join(source))).body
                found += _examples(package, import_module(each.__module__), tree, start - 1)
    return tuple(found)


def _examples(package: str, home: ModuleType, tree: ast.AST, before: int) -> Iterator[Example]:
    page = str(Path(inspect.getfile(home)).relative_to(ROOT))
    for line, text in _docstrings(tree):
        for each in parse(page, inspect.cleandoc(text)):
            yield Example(package, home, each._replace(line=before + line + each.line - 1))


def examples() -> list[Example]:
    """All blocks, each once."""
    every = [each for package in (*PACKAGES, *BESIDE) for each in examples_of(package)]
    return list({each.block.place: each for each in reversed(every)}.values())


def python_examples() -> list[Example]:
    """Those that are Python."""
    return [each for each in examples() if _as_listed(TEXT, each) is None]


def _as_listed(listed: dict[tuple[str, str], str], example: Example) -> str | None:
    places = (example.package, example.home.__name__)
    found = (why for (place, first), why in listed.items() if place in places and example.block.text.startswith(first))
    return next(found, None)


# Names and calls ------------------------------------------------------------------------------------------------------


def problems(example: Example) -> Iterator[str]:
    """What a reader would stumble over: names and parameters that aren't there."""
    try:
        tree = compile(
            example.block.text, example.block.place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
    except SyntaxError as error:
        yield f"no Python: {error}"
        return
    nodes = list(ast.walk(tree))
    own = {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    own |= {each.name for each in nodes if isinstance(each, (ast.FunctionDef, ast.MatchAs)) and each.name}
    own |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    for each in nodes:
        if isinstance(each, ast.ImportFrom) and str(each.module).startswith("kohort"):
            home = import_module(str(each.module))
            yield from (f"no {name.name} in {each.module}" for name in each.names if not hasattr(home, name.name))
        elif isinstance(each, ast.Name) and each.id not in own and _named(example, each.id) is None:
            if each.id not in GIVEN | OF_OTHERS and not hasattr(builtins, each.id):
                yield f"nobody knows {each.id}"
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id not in own:
            if (called := _named(example, each.func.id)) is not None and not _takes(called, each, bound=True):
                yield f"{each.func.id} doesn't take {ast.unparse(each)}"
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and _root(each.func) not in OF_OTHERS:
            name, classes = each.func.attr, shown_classes(example.package)
            several = [getattr(cls, name) for cls in classes if hasattr(cls, name)]
            if not several and not any(hasattr(cls, name) for cls in (dict, list)):
                yield f"nothing has {name}"
            elif several and not any(_takes(method, each, bound=False) for method in several):
                yield f"{name} doesn't take {ast.unparse(each)}"


def _named(example: Example, name: str) -> Any:
    """What a name is to the reader of an example: the package's, or the module's that it stands in."""
    home = import_module(example.package)
    return getattr(home, name, None) if name in exported_by(home) else getattr(example.home, name, None)


@cache
def exported_by(home: ModuleType) -> tuple[str, ...]:
    return tuple(getattr(home, "__all__", ()))


def _root(node: ast.expr) -> str:
    """The name with which a chain of calls and attributes begins."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _takes(called: Any, call: ast.Call, *, bound: bool) -> bool:
    """Whether a call's arguments fit the parameters, as far as they can be seen."""
    if not callable(called):
        return True
    given = [None] * (len(call.args) + (not bound))
    if getattr(called, "__name__", "") == "StreamsApp":  # whose other parameters are settings
        named = {each.arg for each in call.keywords}
        if not named <= {"application_id", "bootstrap_servers", *(each.name for each in fields(AppSettings))}:
            return False
    try:
        inspect.signature(called).bind(*given, **{each.arg: None for each in call.keywords if each.arg})
    except TypeError:
        return False
    return True


@cache
def shown_classes(package: str) -> tuple[type, ...]:
    """Classes of the reference, and beside it, of the same part of Kohort as a package."""
    several = [*((each, exported(each)) for each in PACKAGES), *BESIDE.items()]
    part = package.split(".")[1]
    things = [getattr(import_module(home), name) for home, names in several for name in names]
    return tuple(each for each in things if inspect.isclass(each) and each.__module__.startswith(f"kohort.{part}."))


def test_examples_say_what_is_there() -> None:
    """They are Python; what they import, name and call is there, with these parameters, as far as the text shows it."""
    found = python_examples()
    assert len(found) > 40
    assert [f"{each.block.place}: {problem}" for each in found for problem in problems(each)] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("print(", "no Python: "),
        ("from kohort.spark import sum", "no sum in kohort.spark"),
        ("avrg('delay')", "nobody knows avrg"),
        ("window('at')", "window doesn't take window('at')"),
        ("StreamsApp('a', standbys=1)", "StreamsApp doesn't take StreamsApp('a', standbys=1)"),
        ("flights.groupby('origin')", "nothing has groupby"),
        ("flights.dedupe('id', in_='1 hour')", "dedupe doesn't take flights.dedupe('id', in_='1 hour')"),
    ],
)
def test_what_is_not_there_is_found(text: str, problem: str) -> None:
    package = "kohort.spark"
    (found,) = problems(Example(package, import_module(package), Block("page.md", 1, "", text)))
    assert found.startswith(problem)


def test_lists_name_examples_that_are_there() -> None:
    """No reason outlives its block, and the files that it names are there."""
    for listed in (TEXT, NOT_RUN):
        for place, why in listed.items():
            assert sum(_as_listed({place: why}, each) is not None for each in examples()) == 1, place
            assert all((ROOT / path).exists() for path in re.findall(r"\b(?:tests|docs)/[\w/-]+\.\w+", why)), why


# What runs ------------------------------------------------------------------------------------------------------------


class EnoughError(Exception):
    """Enough was printed by what would go on."""


def run_here() -> list[Example]:
    """Those that need no Spark."""
    found = [each for package in WITHOUT_SPARK for each in examples_of(package)]
    return [each for each in found if _as_listed(TEXT | NOT_RUN, each) is None]


@pytest.mark.parametrize("example", run_here(), ids=lambda example: example.block.place)
def test_examples_run(example: Example) -> None:
    """As a reader would run them who has imported what the package has, beside a broker with some topics."""
    said: list[str] = []

    def show(*values: object) -> None:
        said.append(" ".join(map(str, values)))
        if "async for" in example.block.text:
            raise EnoughError

    home = import_module(example.package)
    scope = {name: getattr(home, name) for name in exported(example.package)}
    scope |= {"confluent_kafka": confluent_kafka, "print": show}
    with Broker() as broker, asyncio.Runner() as runner:
        filling = Filling(broker, "example")
        filling.topic(["an order"], name="orders")
        filling.topic(name="greetings")
        filling.group(filling.topic(["a word"]), name="word-count")
        runner.run(_read_from_the_beginning(broker.bootstrap_servers, "billing"))
        text = example.block.text.replace("localhost:9092", broker.bootstrap_servers)
        compiled = compile(text, example.block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.suppress(EnoughError):
            if compiled.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(compiled, scope))
            else:
                exec(compiled, scope)
    promised = re.findall(r"print\(.*\)  # (.*?)(?:, \.\.\.\))?$", example.block.text, re.MULTILINE)
    assert len(said) == example.block.text.count("print(")
    assert all(line.startswith(start) for line, start in zip(said, promised, strict=False))


async def _read_from_the_beginning(servers: str, group: str) -> None:
    async with Admin(servers) as admin:
        resource = ConfigResource(ResourceType.GROUP, group)
        await admin.configs.alter(resource, set={"share.auto.offset.reset": "earliest"})


# Commands -------------------------------------------------------------------------------------------------------------


def lines() -> list[tuple[str, str]]:
    """Each line of an example in the pages of the commands, with its page."""
    found = []
    for page in commands.pages():
        for each in parse(page.path, page.text):
            assert each.language in ("sh", "text"), each.place  # the latter is how to use a command
            found += [(page.path, line) for line in each.text.splitlines() if each.language == "sh"]
    return found


def parsed(line: str) -> int:
    """Has each command of a line parsed, but not done; how many of them are Kohort's.

    Raises:
        Exception: it has no such command or option, or the values don't fit.
    """
    inner = re.findall(r"\$\((.*?)\)", line)
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    several: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set(";|&"):
            several.append([])
        elif word in ("<", ">", ">>"):
            next(words)
        else:
            several[-1].append(word)
    ours = [each[1:] for each in several if each[:1] == ["kohort"]]
    for arguments in ours:
        command, context = kohort(), kohort().make_context("kohort", arguments)
        while hasattr(command, "commands"):
            name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            context = command.make_context(name, rest, parent=context)
    return len(ours) + sum(map(parsed, inner))


@cache
def kohort() -> Any:
    """The command, with all below it."""
    return typer.main.get_command(_application([*COMMANDS]))


def test_examples_of_commands_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the parser that takes what a user types: commands, options, values of the right types, nothing missing."""
    for name in [each for each in os.environ if each.startswith("KOHORT_")]:
        monkeypatch.delenv(name)
    shown = lines()
    assert len(shown) > 70
    refused = []
    for page, line in shown:
        try:
            assert parsed(line) == 1, "not one command of Kohort's"
        except Exception as error:  # what the parser raises is typer's own copy of click's
            refused.append(f"{page}: {line}: {error}")
    assert refused == []


@pytest.mark.parametrize(
    "line",
    [
        "kohort topic list",
        "kohort topics make flights",
        "kohort topics create flights --partition 4",
        "kohort topics create flights --partitions four",
        "kohort topics create",
        "kohort groups describe a | kohort cluster --widely",
        "kohort cluster a-name",
    ],
)
def test_what_the_parser_does_not_take_is_found(line: str) -> None:
    with pytest.raises(Exception) as raised:
        parsed(line)
    assert "UsageError" in [each.__name__ for each in raised.type.__mro__]  # typer's own copy of click's


def test_no_command_in_a_help_text_is_left_out() -> None:
    """What isn't an example names commands and options that are there, with options only as code in a sentence."""
    seen = 0
    for page in commands.pages():
        prose = re.sub(r"^```.*?^```$|^#+ [^\n]*$", "", page.text, flags=re.DOTALL | re.MULTILINE)
        for code, name, own, option in re.findall(r"(`?)\bkohort ([a-z-]+)(?: ([a-z-]+))?((?: [\w.:-]+)* -)?", prose):
            if (name, own) == ("ready", "on"):  # what `kohort serve` prints
                continue
            seen += 1
            assert name in COMMANDS, f"{page.path}: kohort {name}"
            below = getattr(kohort().commands[name], "commands", None)
            assert not own or below is None or own in below, f"{page.path}: kohort {name} {own}"
            assert not option or code, f"{page.path}: kohort {name} {own} with options would be an example"
        for line in re.findall(r"`(kohort [a-z-]+[^`]* -[^`]*)`", prose):
            with contextlib.suppress(typer.BadParameter):  # a sentence leaves arguments out
                parsed(line)
    assert seen > len(COMMANDS)
