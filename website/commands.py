"""The reference of the command `kohort`: a page a sub-command, out of what `--help` says."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import typer

from kohort.cli import COMMANDS
from website.page import Page, cell

_EXAMPLE = ("kohort ", "echo ", "openssl ", "spark-submit ")
"""How the paragraphs begin that are for a terminal."""

_OF_TYPER = ("help", "install_completion", "show_completion")
"""Options that each command has."""


def pages() -> list[Page]:
    """The index, then the commands."""
    index = [
        "# The command kohort",
        "",
        "[Commands for a cluster](../cli.md) is the guide; this is all that `--help` says.",
        "",
    ]
    index += ["| Command | What it does |", "| --- | --- |"]
    made = []
    for name, (module, about) in COMMANDS.items():
        index.append(f"| [kohort {name}](commands/{name}.md) | {cell(about)} |")
        text = [f"# kohort {name}", "", cell(about), "", *_described(_command(name, module), f"kohort {name}", 2)]
        made.append(Page(f"reference/commands/{name}.md", ("Commands",), "\n".join(text) + "\n"))
    return [Page("reference/commands.md", ("Commands",), "\n".join(index) + "\n"), *made]


def _command(name: str, path: str) -> Any:
    """The command as click has it: typer's own copy of click, which has no name that it promises."""
    module = import_module(path)
    if hasattr(module, "app"):
        return typer.main.get_command(module.app)
    app = typer.Typer()
    app.command(name)(module.command)
    return typer.main.get_command(app)


def _described(command: Any, name: str, level: int) -> Iterator[str]:
    """Usage, explanation and parameters of a command; of a group, those of its commands below headings."""
    context = command.make_context(name, [], resilient_parsing=True)
    if hasattr(command, "commands"):
        for own, inner in command.commands.items():
            yield from (f"{'#' * level} {name} {own}", "", *_described(inner, f"{name} {own}", level + 1))
        return
    pieces = " ".join(command.collect_usage_pieces(context))
    yield from ("```text", f"{name} {pieces}".rstrip(), "```", "")
    yield from (*_explanation(inspect.cleandoc(command.help or ""), name), "")
    visible = [each for each in command.get_params(context) if not getattr(each, "hidden", False)]
    rows = [_parameter(each, context) for each in visible if each.name not in _OF_TYPER]
    if rows:
        yield from ("| Argument or option | Default | Meaning |", "| --- | --- | --- |", *rows, "")


def _explanation(text: str, name: str) -> Iterator[str]:
    """The docstring of a command, in which a paragraph that begins with a command is an example."""
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        example = paragraph.startswith(_EXAMPLE)
        yield from ("```sh", paragraph, "```", "") if example else (cell(paragraph), "")


def _parameter(each: Any, context: Any) -> str:
    shown = ", ".join([*each.opts, *each.secondary_opts]) if each.param_type_name == "option" else ""
    metavar = each.make_metavar(context)
    wanted = "" if getattr(each, "is_flag", False) else metavar
    title = f"`{f'{shown} {wanted}'.strip()}`".replace("|", "\\|")
    plain = each.default if isinstance(each.default, (int, float, str)) and not isinstance(each.default, bool) else None
    default = "must be given" if each.required else "" if plain is None else f"`{plain}`"
    return f"| {title} | {default} | {cell(getattr(each, 'help', None) or '')} |"
