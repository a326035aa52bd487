"""`--watch`: showing something repeatedly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

import typer
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from kohort.cli.client.client_command import ClientCommand
from kohort.cli.client.errors import explain
from kohort.cli.client.options import within
from kohort.cli.terminal import err, out, printable
from kohort.client.errors import ClientError
from kohort.protocol.errors import KafkaError

_EVERY: Final = 2.0
"""Default interval in seconds."""

WatchOption = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[SECONDS]",
        callback=within(0.1, 86_400),
        help=f"Show it every SECONDS (by default {_EVERY:g}), until Ctrl-C.",
    ),
]

Shown = tuple[Sequence[RenderableType], Any]
"""What is shown: tables, and the same as JSON."""


class WatchCommand(ClientCommand):
    """A command whose `--watch` may come without a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Inserts the number where it is missing."""
        given = []
        for at, arg in enumerate(args):
            given.append(arg)
            if arg == "--watch" and not _is_number(args[at + 1 : at + 2]):
                given.append(f"{_EVERY}")
        return super().parse_args(ctx, given)


async def watch(read: Callable[[], Awaitable[Shown]], every: float, *, as_json: bool) -> None:
    """Shows the result of `read` every so many seconds, until the command is interrupted, which is a success.

    In a terminal it is updated in place; elsewhere one result follows the other, each below its time, or as JSON in a
    line each. Errors are shown, and `read` is called again.
    """
    try:
        if as_json or not out.is_terminal:
            while True:
                try:
                    tables, document = await read()
                    if as_json:
                        typer.echo(json.dumps(document))
                    else:
                        out.print(Text(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"), *tables, sep="\n")
                        out.file.flush()
                except (ClientError, KafkaError) as error:
                    err.print(Text(f"error: {printable(explain(error))}"), soft_wrap=True)
                await asyncio.sleep(every)
        await _watch_in_place(read, every)
    except asyncio.CancelledError:
        return


async def _watch_in_place(read: Callable[[], Awaitable[Shown]], every: float) -> None:
    from rich.live import Live

    with Live(console=out, auto_refresh=False, screen=True) as live:
        while True:
            try:
                tables, _ = await read()
                live.update(_Fitted(Group(*tables)), refresh=True)
            except (ClientError, KafkaError) as error:
                live.update(Text(f"error: {printable(explain(error))}", style="red"), refresh=True)
            await asyncio.sleep(every)


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The lines that fit into the terminal, and the number of those that don't."""

    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Renders for the current size of the terminal."""
        lines = console.render_lines(self.content, options.update(height=None), new_lines=True)
        if len(lines) > console.height:
            left_out = len(lines) - console.height + 1
            note = f"… {left_out:,} more lines than fit; without --watch they are shown"
            lines = [*lines[:-left_out], [Segment(note[: console.width], Style(dim=True))]]
        for line in lines:
            yield from line


def _is_number(following: list[str]) -> bool:
    try:
        return bool(following) and float(following[0]) >= 0
    except ValueError:
        return False
