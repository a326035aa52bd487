"""`kohort wire encode`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from kohort.cli.bytes_input import input_name, read_text
from kohort.cli.terminal import fail, printable
from kohort.cli.wire.options import API_HELP, DirectionOption, VersionOption, choose_message, choose_version

_AROUND: Final = 30
"""Characters shown on either side of a mistake."""


def encode(
    api: Annotated[str, typer.Option("--api", metavar="API", help=API_HELP)],
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON: a file, or standard input.")] = "-",
    response: DirectionOption = None,
    version: VersionOption = None,
) -> None:
    """Encode a message from JSON with Kafka's field names, and print its bytes as hex.

    What the JSON leaves out has its default.

    echo '{"GroupId": "orders", "MemberId": "m"}' | kohort wire encode --api Heartbeat --version 4
    """
    from kohort.protocol.errors import ProtocolError
    from kohort.protocol.json_form import from_json

    message = choose_message(api, response)
    number = choose_version(message, version)
    value = _parsed(read_text(source), input_name(source))
    try:
        typer.echo(from_json(message, number, value).encode(number).hex())
    except ProtocolError as error:
        fail(f"{printable(error.path) or 'the message'}: {error.reason} ({error.message} v{error.version})", 1)


def _parsed(text: str, name: str) -> Any:
    if not text.strip():
        fail(f"not JSON: {name} is empty", 1)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1]
        mark = _marked(line, error.colno - 1)
        fail(f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}\n{mark}", 1)
    except (ValueError, RecursionError) as error:
        fail(f"not a message: {error}", 1)


def _marked(line: str, column: int) -> str:
    """The line around the column, and a mark under it."""
    start = max(0, column - _AROUND)
    before, after = printable(line[start:column]), printable(line[column : column + _AROUND])
    return f"  {before}{after}\n  {' ' * len(before)}^"
