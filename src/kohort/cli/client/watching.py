"""`--watch`: the same again and again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from typer.core import TyperCommand

from kohort.cli.client.failures import explain
from kohort.cli.terminal import err, out, printable
from kohort.client.errors import ClientError
from kohort.protocol.errors import KafkaError

__all__ = ["Shown", "WatchCommand", "WatchOption", "watch"]

_EVERY: Final = 2.0
"""Seconds between two looks, unless said otherwise."""

WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[SECONDS]",
        min=0.1,
        max=86_400,
        help=f"Show it again and again, every {_EVERY:g} seconds or so often, until Ctrl-C.",
    ),
]

Shown = tuple[Sequence[RenderableType], Any]
"""What a look shows: for people, and as JSON."""


class WatchCommand(TyperCommand):
    """A command whose `--watch` may stand without a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the number in where it is left out."""
        given = []
        for at, arg in enumerate(args):
            given.append(arg)
            if arg == "--watch" and not _is_number(args[at + 1 : at + 2]):
                given.append(f"{_EVERY}")
        return super().parse_args(ctx, given)


async def watch(look: Callable[[], Awaitable[Shown]], every: float, *, as_json: bool) -> None:
    """Show what `look` sees, every so many seconds, until the command is interrupted, which is its good end.

    In a terminal it stays in place; elsewhere each look follows the last one, as JSON in a line each. What fails is
    said, and tried again.
    """
    try:
        if as_json or not out.is_terminal:
            while True:
                try:
                    tables, document = await look()
                    if as_json:
                        typer.echo(json.dumps(document))
                    else:
                        out.print(*tables, sep="\n")
                        out.file.flush()
                except (ClientError, KafkaError) as error:
                    err.print(Text(f"error: {printable(explain(error))}"), soft_wrap=True)
                await asyncio.sleep(every)
        await _watch_in_place(look, every)
    except asyncio.CancelledError:
        return


async def _watch_in_place(look: Callable[[], Awaitable[Shown]], every: float) -> None:
    from rich.live import Live

    with Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            try:
                tables, _ = await look()
                live.update(_Fitted(Group(*tables)), refresh=True)
            except (ClientError, KafkaError) as error:
                live.update(Text(f"error: {printable(explain(error))}", style="red"), refresh=True)
            await asyncio.sleep(every)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """As much as the terminal has lines for, and how much that leaves out."""

    whole: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render for the size that the terminal has now."""
        lines = console.render_lines(self.whole, options.update(height=None), new_lines=True)
        if len(lines) > console.height:
            left_out = len(lines) - console.height + 1
            note = f"… {left_out:,} lines more than the terminal has; without --watch they are shown"
            lines = [*lines[:-left_out], [Segment(note[: console.width], Style(dim=True))]]
        for line in lines:
            yield from line


def _is_number(following: list[str]) -> bool:
    try:
        return bool(following) and float(following[0]) >= 0
    except ValueError:
        return False
