"""`kohort wire decode`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kohort.cli.bytes_input import read_bytes
from kohort.cli.terminal import err, fail, out
from kohort.cli.wire.options import API_HELP, DirectionOption, VersionOption, choose_message, choose_version

if TYPE_CHECKING:
    from kohort.protocol.errors import ProtocolError
    from kohort.protocol.message import Message


def decode(
    source: Annotated[str, typer.Argument(metavar="FILE|-|HEX", help="A file, standard input, or hex digits.")],
    api: Annotated[str | None, typer.Option("--api", help=API_HELP)] = None,
    response: DirectionOption = False,
    version: VersionOption = None,
    header: Annotated[
        bool, typer.Option("--header", help="The bytes begin with the request or response header.")
    ] = False,
    frame: Annotated[bool, typer.Option("--frame", help="The bytes begin with their size, then the header.")] = False,
    annotate: Annotated[bool, typer.Option("--annotate", help="Print a hexdump, each field labelled.")] = False,
) -> None:
    """Decode a message, and print it as JSON with Kafka's field names.

    kohort wire decode --api Heartbeat --version 4 076f726465727300000007016d00
    """
    from kohort.protocol.json_form import to_json

    data = read_bytes(source)
    start = _frame_size(data) if frame else 0
    if (header or frame) and not response:
        api, version = _from_header(data[start:], api, version)
    if api is None:
        fail("say which message it is: --api Heartbeat (a request with --header or --frame says it itself)")
    message = choose_message(api, response)
    number = choose_version(message, version)
    shown: dict[str, Any] = {}
    pos = start
    sections = _sections(message, number, header or frame)
    for name, part, part_version, last in sections:
        pos, value = _section(data, pos, part, part_version, last, annotate)
        shown[name] = to_json(value, part_version)
    if not annotate:
        _print_json(shown if len(sections) > 1 else shown["message"])


def _frame_size(data: bytes) -> int:
    """Check the size that a frame begins with, and return how many bytes it takes."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 or size != len(data) - 4:
        fail(f"the frame says that {size} bytes follow, but {max(0, len(data) - 4)} do", 1)
    return 4


def _from_header(data: bytes, api: str | None, version: int | None) -> tuple[str | None, int | None]:
    """API and version of a request as its header says; the options may say the same, or nothing."""
    from kohort.protocol.messages import API_NAMES

    if len(data) < 4:
        return api, version
    key, number = int.from_bytes(data[:2], "big", signed=True), int.from_bytes(data[2:4], "big", signed=True)
    said = API_NAMES.get(key)
    if said is None:
        fail(f"the header names API {key}, which is none", 1)
    if api is not None and api.lower().removesuffix("request") != said.lower():
        fail(f"the header says {said} (API {key}), not {api}", 1)
    if version is not None and version != number:
        fail(f"the header says version {number}, not {version}", 1)
    return said, number


def _sections(message: type[Message], version: int, header: bool) -> list[tuple[str, type[Message], int, bool]]:
    """What lies in the bytes, in order: name, message, version, and whether it ends them."""
    from kohort.protocol.message import Kind
    from kohort.protocol.messages import api
    from kohort.protocol.messages.headers import RequestHeader, ResponseHeader

    spec = message.__message__
    own = ("message", message, version, True)
    if not header:
        return [own]
    if spec.kind is Kind.REQUEST:
        return [("header", RequestHeader, api(spec.key).request_header_version(version), False), own]
    if spec.kind is Kind.RESPONSE:
        return [("header", ResponseHeader, api(spec.key).response_header_version(version), False), own]
    fail(f"{spec.name} has no header before it: leave out --header and --frame")


def _section(
    data: bytes, pos: int, message: type[Message], version: int, last: bool, annotate: bool
) -> tuple[int, Message]:
    """Decode one section, printing its dump if asked, and return where it ends with what it says."""
    from kohort.cli.hexdump import joined, labelled
    from kohort.protocol.errors import ProtocolError
    from kohort.protocol.trace import trace_until_fault

    rest = data[pos:]
    if annotate:
        spans, fault = trace_until_fault(message, version, rest, whole=last)
        out.print(f"{message.__name__} v{version}", style="bold")
        out.print(joined(labelled(rest, spans, pos)), soft_wrap=True)
        if fault is not None:
            _refuse(fault, rest, pos)
    try:
        if last:
            return len(data), message.decode(rest, version)
        value, size = message.read(rest, 0, version)
        return pos + size, value
    except ProtocolError as error:
        _refuse(error, rest, pos)
        raise


def _refuse(error: ProtocolError, data: bytes, base: int) -> None:
    """Show where the bytes are wrong, and exit."""
    from kohort.cli.hexdump import joined, pointed

    if error.offset is not None:
        err.print(joined(pointed(data, error.offset, error.reason, base)), soft_wrap=True)
    where = f" (byte {base + error.offset} of the input)" if base and error.offset is not None else ""
    fail(f"{error}{where}", 1)


def _print_json(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if out.is_terminal:
        from rich.json import JSON

        out.print(JSON(text))
    else:
        typer.echo(text)
