"""`kohort wire roundtrip`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from kohort.cli.bytes_input import read_text
from kohort.cli.terminal import err, out, printable

if TYPE_CHECKING:
    from kohort.protocol.message import Message

_LONG = 20_000
"""Number of lines from which a progress bar is shown."""

_KINDS = ("request", "response", "header", "data")


@dataclass(slots=True)
class Tally:
    """Results of the lines, counted."""

    ok: int = 0
    failed: int = 0
    unknown: int = 0


def roundtrip(
    source: Annotated[str, typer.Argument(metavar="FILE|-", help="JSON lines: a file, or standard input.")],
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print messages of an unknown API or version, too.")
    ] = False,
) -> None:
    """Decode captured messages and encode them again; the bytes must be the same.

    Each line is a message: {"api": "Heartbeat", "kind": "request", "version": 4, "hex": "…"}. Those that fail are
    printed with reason and offset. Exits with 1 if any failed; messages of an unknown API or version don't count.
    """
    tally = Tally()
    for number, line in _progress(read_text(source).split("\n")):
        if line.strip():
            _check(number, line, tally, verbose)
    out.print(f"{tally.ok} ok, {tally.failed} failed, {tally.unknown} unknown")
    raise typer.Exit(1 if tally.failed else 0)


def _progress(lines: list[str]) -> Iterator[tuple[int, str]]:
    numbered = list(enumerate(lines, 1))
    if len(lines) < _LONG or not sys.stderr.isatty():
        yield from numbered
        return
    from rich.progress import track

    yield from track(numbered, "checking", console=err, transient=True)


def _check(number: int, line: str, tally: Tally, verbose: bool) -> None:
    name = f"line {number}"
    try:
        entry = json.loads(line)
        api, kind, version, data = _fields(entry)
    except (ValueError, RecursionError) as error:
        tally.failed += 1
        _report(name, f"not a message: {error}")
        return
    name = f"{name}: {printable(api)} {kind} v{version}"
    message = _message(api, kind)
    if message is None or version not in message.__message__.versions:
        tally.unknown += 1
        reason = "no such message" if message is None else "no such version"
        if verbose:
            out.print(Text.assemble((f"{name}: ", "bold yellow"), f"unknown: {reason}"), soft_wrap=True)
        return
    fault = _fault(message, version, data)
    if fault is None:
        tally.ok += 1
    else:
        tally.failed += 1
        _report(name, fault)


def _fields(entry: Any) -> tuple[str, str, int, bytes]:
    """The four fields of a line.

    Raises:
        ValueError: a field is missing or of the wrong type.
    """
    if not isinstance(entry, dict):
        raise ValueError("a JSON object wanted")
    wanted = {"api": str, "kind": str, "version": int, "hex": str}
    for key, kind in wanted.items():
        if key not in entry:
            raise ValueError(f'"{key}" is missing')
        if not isinstance(entry[key], kind) or isinstance(entry[key], bool):
            raise ValueError(f'"{key}" should be {"a number" if kind is int else "a string"}')
    if entry["kind"] not in _KINDS:
        raise ValueError(f'"kind" should be {", ".join(_KINDS[:-1])} or {_KINDS[-1]}')
    try:
        data = bytes.fromhex(entry["hex"])
    except ValueError as error:
        raise ValueError(f'"hex": {error}') from None
    return entry["api"], entry["kind"], entry["version"], data


def _message(api: str, kind: str) -> type[Message] | None:
    from kohort.protocol.catalogue import find_message

    try:
        message = find_message(api, response=kind == "response")
    except KeyError:
        return None
    return message if message.__message__.kind.value == kind else None


def _fault(message: type[Message], version: int, data: bytes) -> str | None:
    """How the bytes differ after decoding and encoding; None if they don't."""
    from kohort.protocol.errors import ProtocolError
    from kohort.protocol.trace import trace

    try:
        again = message.decode(data, version).encode(version)
    except ProtocolError as error:
        field = f" in {error.path}" if error.path else ""
        return f"byte {error.offset}{field}: {error.reason}"
    if again == data:
        return None
    offset = next((i for i, (a, b) in enumerate(zip(data, again, strict=False)) if a != b), min(len(data), len(again)))
    _, spans, _ = trace(message, version, data)
    path = next((span.path for span in spans if span.start <= offset < span.end), "")
    field = f" in {path}" if path else ""
    before, after = data[offset : offset + 4].hex(" "), again[offset : offset + 4].hex(" ")
    return f"byte {offset}{field}: {before or 'nothing'} came out as {after or 'nothing'}"


def _report(name: str, reason: str) -> None:
    out.print(Text.assemble((f"{name}: ", "bold red"), f"failed: {printable(reason)}"), soft_wrap=True)
