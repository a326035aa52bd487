"""`kohort wire decode`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from kohort.cli.bytes_input import read_bytes
from kohort.cli.terminal import err, fail, print_json, print_lines
from kohort.cli.wire.options import API_HELP, DirectionOption, VersionOption, choose_message, choose_version

if TYPE_CHECKING:
    from kohort.protocol.errors import ProtocolError
    from kohort.protocol.message import Message


def decode(
    source: Annotated[str, typer.Argument(metavar="FILE|-|HEX", help="A file, standard input, or hex digits.")],
    api: Annotated[str | None, typer.Option("--api", metavar="API", help=API_HELP)] = None,
    response: DirectionOption = None,
    version: VersionOption = None,
    header: Annotated[
        bool, typer.Option("--header", help="The bytes begin with the request or response header.")
    ] = False,
    frame: Annotated[bool, typer.Option("--frame", help="The bytes begin with their size, then the header.")] = False,
    annotate: Annotated[bool, typer.Option("--annotate", help="Print a hexdump, each field labelled.")] = False,
) -> None:
    """Decode a message, and print it as JSON with Kafka's field names.

    kohort wire decode --api Heartbeat --version 4 076f726465727300000007026d0000
    """
    header = header or frame
    message = _named(api, response, version, header)
    data = read_bytes(source)
    if not frame:
        _decode(data, 0, message, version, header, annotate)
        return
    from kohort.protocol.frames import FrameError, frame_fault, frame_size

    try:
        size = frame_size(data)
    except FrameError as error:
        fail(str(error), 1)
    try:
        _decode(data[: 4 + size], 4, message, version, header, annotate)
    finally:  # last, as it may be the reason for an error before
        if fault := frame_fault(size, len(data) - 4):
            fail(fault, 1)


def _named(api: str | None, response: bool | None, version: int | None, header: bool) -> type[Message] | None:
    """The message that the options name; None if the request's header names it."""
    from kohort.protocol.message import Kind

    if api is None:
        if response or not header:
            fail(
                "say which message it is: --api Heartbeat (only a request's header, with --header or --frame, names it)"
            )
        return None
    message = choose_message(api, response)
    choose_version(message, version)
    if header and message.__message__.kind not in (Kind.REQUEST, Kind.RESPONSE):
        fail(f"{message.__name__} has no header before it: leave out --header and --frame")
    return message


def _decode(
    data: bytes, start: int, message: type[Message] | None, version: int | None, header: bool, annotate: bool
) -> None:
    """Prints the message at `start`, with its header if there is one."""
    from kohort.protocol.frames import FrameError, request_of, sections
    from kohort.protocol.json_form import to_json
    from kohort.protocol.message import Kind

    if header and (message is None or message.__message__.kind is Kind.REQUEST):
        try:
            message, version = request_of(data[start:], message, version)
        except FrameError as error:
            fail(str(error), 1)
    assert message is not None
    shown: dict[str, Any] = {}
    pos = start
    for name, part, part_version, last in sections(message, choose_version(message, version), header=header):
        pos, value = _section(data, pos, part, part_version, last, annotate)
        shown[name] = to_json(value, part_version)
    if not annotate:
        print_json(shown if header else shown["message"])


def _section(
    data: bytes, pos: int, message: type[Message], version: int, last: bool, annotate: bool
) -> tuple[int, Message]:
    """Decodes one section, printing its dump if asked, and returns its end and its value."""
    from kohort.cli.hexdump import labelled
    from kohort.protocol.errors import ProtocolError
    from kohort.protocol.trace import trace_until_fault

    rest = data[pos:]
    if annotate:
        spans, fault = trace_until_fault(message, version, rest, exact=last)
        print_lines([[(f"{message.__name__} v{version}", "bold")]])
        print_lines(labelled(rest, spans, pos))
        if fault is not None:
            _refuse(fault, rest, pos)
    try:
        if last:
            return len(data), message.decode(rest, version)
        value, size = message.read(rest, 0, version)
        return pos + size, value
    except ProtocolError as error:
        _refuse(error, rest, pos)


def _refuse(error: ProtocolError, data: bytes, base: int) -> NoReturn:
    """Shows where the bytes are wrong, and exits."""
    from kohort.cli.hexdump import pointed

    if error.offset is not None:
        print_lines(pointed(data, error.offset, error.reason, base), err)
    where = f" (byte {base + error.offset} of the input)" if base and error.offset is not None else ""
    fail(f"{error}{where}", 1)
