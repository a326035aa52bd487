"""The option `--cluster`, which all commands have that take `--bootstrap-server`: one place adds it to all."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand
from typer.main import get_params_convertors_ctx_param_name_from_function

from kohort.cli.client import completion
from kohort.cli.client.profiles import CLUSTER, named_by_option, readers_told

__all__ = ["ClientCommand", "with_cluster_option"]

_HOW_MANY: Final = frozenset(("count", "limit", "max", "num", "number"))
"""Words by which programs call how many they take at most."""


def _choose(value: str | None) -> str | None:
    named_by_option.set(value)
    readers_told.set(False)
    return value


def _option(
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            "-c",
            metavar="NAME",
            help=f"A cluster of 'kohort clusters'; unless given, ${CLUSTER} or the default one.",
            callback=_choose,
            expose_value=False,
            autocompletion=completion.clusters,
        ),
    ] = None,
) -> None:
    """Has the option's type, as any command has its own."""


class ClientCommand(TyperCommand):
    """A command that has `--cluster`, too, if it has `--bootstrap-server`.

    It has `-c` alone where it has another `--cluster`.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        params = [*(settings.get("params") or ())]
        names = [each.name for each in params]
        if "bootstrap_server" in names:
            at = names.index("bootstrap_server") + 1
            (option,) = get_params_convertors_ctx_param_name_from_function(_option)[0]
            if any("--cluster" in each.opts for each in params):  # as Kafka's tools call a resource of ACLs
                option.opts = ["-c"]
            params.insert(at, option)
        super().__init__(*arguments, **{**settings, "params": params, "help": _unwrapped(settings.get("help"))})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The same, but an option that isn't there has those suggested that share a word with it."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if (given := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
                error.possibilities = alike(given, [name for each in self.params for name in each.opts])
            raise


def alike(given: str, options: Iterable[str]) -> list[str]:
    """Long options that may be meant: those that are spelt alike, and those that share a word with it."""
    names = {each.removeprefix("--"): each for each in options if each.startswith("--")}
    words = given.removeprefix("--").split("-")
    same = [each for name, each in names.items() if any(_same(a, b) for a in words for b in name.split("-"))]
    spelt = [names[name] for name in get_close_matches(given.removeprefix("--"), names)]
    return [*spelt, *(each for each in same if each not in spelt)]


def _same(given: str, word: str) -> bool:
    return (len(given) > 2 and word.startswith(given)) or {given, word} <= _HOW_MANY


def _unwrapped(text: str | None) -> str | None:
    """A help text with each paragraph in a line of its own: a terminal breaks it where it is wide, not the source."""
    if text is None:
        return None
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in inspect.cleandoc(text).split("\n\n"))


def with_cluster_option(app: typer.Typer) -> typer.Typer:
    """The same commands, as `ClientCommand`s."""
    for each in app.registered_commands:
        if each.cls in (None, TyperCommand):
            each.cls = ClientCommand
    return app
