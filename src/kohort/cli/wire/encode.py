"""`kohort wire encode`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kohort.cli.bytes_input import read_text
from kohort.cli.terminal import fail
from kohort.cli.wire.options import API_HELP, DirectionOption, VersionOption, choose_message, choose_version


def encode(
    api: Annotated[str, typer.Option("--api", help=API_HELP)],
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON: a file, or standard input.")] = "-",
    response: DirectionOption = False,
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
    text = read_text(source)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        lines = text.splitlines()
        line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        mark = f"\n  {line}\n  {' ' * (error.colno - 1)}^"
        fail(f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}{mark}", 1)
    except (ValueError, RecursionError) as error:
        fail(f"not a message: {error}", 1)
    try:
        typer.echo(from_json(message, number, value).encode(number).hex())
    except ProtocolError as error:
        fail(f"{error.path or 'the message'}: {error.reason} ({error.message} v{error.version})", 1)
