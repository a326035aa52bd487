"""`kohort wire show`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from kohort.cli.terminal import fail, printable
from kohort.cli.wire.options import DirectionOption, VersionOption, choose_message, choose_version


class Format(enum.StrEnum):
    """How a description is written."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


def show(
    name: Annotated[str, typer.Argument(metavar="API", help="API or its key, or any other message, in any case.")],
    response: DirectionOption = None,
    version: VersionOption = None,
    form: Annotated[
        Format, typer.Option("--format", metavar="FORMAT", help="terminal; or of a page markdown, html or json.")
    ] = Format.TERMINAL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the page to this file (- for standard output)."),
    ] = None,
) -> None:
    """Show a message: its diagram (header, fields, sizes, nesting), its schema, and an example.

    kohort wire show StreamsGroupHeartbeat --response --version 0
    """
    from kohort.protocol.describe import describe

    message = choose_message(name, response)
    description = describe(message, choose_version(message, version))
    if form is Format.TERMINAL:
        if output is not None:
            fail("--output wants a page: add --format markdown, html or json")
        from kohort.cli.wire.diagram import print_diagram

        print_diagram(description)
        return

    from kohort.cli.wire import pages

    page = {Format.MARKDOWN: pages.markdown, Format.HTML: pages.html, Format.JSON: pages.as_json}[form](description)
    if output is None or str(output) == "-":
        typer.echo(page)
        return
    try:
        output.write_text(page + "\n", encoding="utf-8")
    except OSError as error:
        fail(f"can't write {printable(str(output))}: {error.strerror}")
