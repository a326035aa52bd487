"""Kafka's protocol on a page: the messages there are, each in each version, and bytes with a label for each field."""

from __future__ import annotations

import base64
import binascii
import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from kohort.console.live import Cell
from kohort.console.record_ranges import ChoiceError
from kohort.console.words import NOTHING, visible
from kohort.plurals import several
from kohort.protocol.catalogue import all_messages, find_message
from kohort.protocol.describe import Description, Part, describe
from kohort.protocol.description_text import label, rows, title
from kohort.protocol.errors import CorruptRecordError, ProtocolError
from kohort.protocol.frames import FrameError, frame_fault, frame_size, request_of, sections
from kohort.protocol.labelled_bytes import labelled_lines
from kohort.protocol.message import Kind, Message
from kohort.protocol.messages import apis
from kohort.protocol.records.batch import Compression, check_batch
from kohort.protocol.records.trace import trace_batch
from kohort.protocol.schema import LATEST
from kohort.protocol.trace import Span, trace_until_fault

MOST_BYTES: Final = 64 * 1024
"""Bytes that are labelled, and to which records are decompressed."""

MOST_TEXT: Final = 4 * MOST_BYTES
"""Characters of hex or base64: hex with a space between bytes takes three for each."""

MOST_LINES: Final = 3_000
"""Lines of a dump."""

LIST_COLUMNS: Final = ("Key", "Message", "Versions", "Flexible since")
DUMP_COLUMNS: Final = ("Byte", "Bytes", "Field", "Type", "Value")
PART_COLUMNS: Final = ("Field", "Type", ">Bytes", "Meaning")

_NO_HEADER: Final = "If these bytes have no header, choose “a message” and name it."

_HEX: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F\s:]*")


class Layout(enum.StrEnum):
    """What bytes are."""

    FRAME = "frame"
    HEADER = "header"
    MESSAGE = "message"
    BATCHES = "batches"


@dataclass(frozen=True, slots=True)
class Dump:
    """A part of the bytes, labelled.

    Attributes:
        title: what it is.
        rows: a line for each field, by number.
    """

    title: str
    rows: Mapping[str, tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Annotated:
    """Bytes, labelled as far as they make sense.

    Attributes:
        dumps: the parts, in order.
        problem: what is wrong with them, in a sentence; "" for nothing.
    """

    dumps: tuple[Dump, ...]
    problem: str = ""


def message_link(name: str, version: int | None = None) -> str:
    """The page of a message, in its newest version or in one."""
    return "/wire/message?" + urlencode({"name": name} | ({} if version is None else {"version": version}))


def message_rows(*, data: bool) -> dict[str, tuple[Cell, ...]]:
    """The rows of all requests and responses, or of all other messages."""
    if not data:
        return {
            entry.name: (
                Cell(str(entry.key)),
                Cell(entry.name, message_link(f"{entry.name}Request")),
                Cell(_versions(entry.versions)),
                Cell(_since(entry.flexible_since)),
            )
            for entry in apis()
        }
    found = [(name, each.__message__) for name, each in all_messages().items()]
    return {
        name: (
            Cell(NOTHING if spec.key < 0 else str(spec.key)),
            Cell(name, message_link(name)),
            Cell(_versions(spec.versions)),
            Cell(_since(spec.flexible_since)),
        )
        for name, spec in found
        if spec.kind not in (Kind.REQUEST, Kind.RESPONSE)
    }


def _versions(versions: range) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def _since(flexible: int) -> str:
    return str(flexible) if flexible <= LATEST else "never"


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A message in a version.

    Attributes:
        name: of the message.
        title: with key, versions and whether it is flexible.
        description: what it is.
        parts: the rows of header and fields, by number.
        versions: links to all versions.
        other: the link to the response of a request, and back; None for what is neither.
        example: JSON.
    """

    name: str
    title: str
    description: Description
    parts: Mapping[str, tuple[Cell, ...]]
    versions: tuple[tuple[int, str], ...]
    other: Cell | None
    example: str


def message_page(name: str, version: str) -> MessagePage:
    """The page of a message.

    Raises:
        ChoiceError: there is no such message, or no such version.
    """
    message = _message(name, response=False)
    number = _version(message, version)
    spec = message.__message__
    own = message.__name__
    description = describe(message, number)
    other = None
    if spec.kind in (Kind.REQUEST, Kind.RESPONSE):
        other_name = f"{spec.api}{'Response' if spec.kind is Kind.REQUEST else 'Request'}"
        theirs = _message(other_name, response=False).__message__.versions
        other = Cell(other_name, message_link(other_name, number if number in theirs else None))
    shown: list[tuple[Cell, ...]] = []
    for heading, parts in ((description.header, description.header_parts), (f"{own} v{number}", description.parts)):
        if heading:
            shown.append((Cell(heading, tone="part"), Cell(""), Cell(""), Cell("")))
            shown += [_part(guide, part) for guide, part in rows(parts)]
    return MessagePage(
        own,
        title(description),
        description,
        {str(at): cells for at, cells in enumerate(shown)},
        tuple((each, message_link(own, each)) for each in spec.versions),
        other,
        json.dumps(description.example, indent=2, ensure_ascii=False),
    )


def _part(guide: str, part: Part) -> tuple[Cell, ...]:
    size = "" if part.size is None else str(part.size)
    return (Cell(f"{guide}{label(part)}"), Cell(part.type), Cell(size), Cell(part.doc))


def _message(name: str, *, response: bool) -> type[Message]:
    try:
        return find_message(name, response=response)
    except KeyError as error:
        raise ChoiceError(visible(str(error.args[0]))) from None


def _version(message: type[Message], text: str) -> int:
    versions = message.__message__.versions
    if not text:
        return versions[-1]
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) in versions):
        raise ChoiceError(f"{message.__name__} has no version {text!r}; it has {_versions(versions)}")
    return int(text)


def bytes_of(text: str) -> bytes:
    """Bytes that were pasted: hex digits, with spaces, colons or 0x or without, or base64.

    Raises:
        ChoiceError: it is neither, or too much.
    """
    if len(text) > MOST_TEXT:
        raise ChoiceError(f"these are {len(text):,} characters; {MOST_TEXT:,} are the most")
    if _HEX.fullmatch(text.strip()):
        digits = re.sub(r"[\s:]|^0[xX]", "", text.strip())
        if len(digits) % 2:
            raise ChoiceError(f"these are {len(digits):,} hex digits, an odd number")
        data = bytes.fromhex(digits)
    else:
        try:
            data = base64.b64decode(re.sub(r"\s", "", text), validate=True)
        except (binascii.Error, ValueError):
            raise ChoiceError("this is neither hex nor base64") from None
    if not data:
        raise ChoiceError("there are no bytes")
    if len(data) > MOST_BYTES:
        raise ChoiceError(f"these are {len(data):,} bytes; {MOST_BYTES:,} are the most")
    return data


def annotated(data: bytes, layout: Layout, name: str = "", version: str = "", *, response: bool = False) -> Annotated:
    """Labels bytes; what is wrong with them is said, beside what could be labelled.

    Args:
        data: the bytes.
        layout: what they begin with, or are.
        name, version: the message; "" where a request's header says it.
        response: whether it is an API's response.

    Raises:
        ChoiceError: there is no such message, or it has to be said which it is.
    """
    if layout is Layout.BATCHES:
        return _batches(data)
    message = _message(name, response=response) if name else None
    number = None if message is None or not version else _version(message, version)
    header = layout is not Layout.MESSAGE
    if message is None and (not header or response):
        raise ChoiceError("say which message it is: only a request's header names it")
    if message is not None and header and message.__message__.kind is Kind.DATA:
        raise ChoiceError(f"{message.__name__} has no header before it")
    if message is not None and message.__message__.kind is Kind.HEADER and header:
        raise ChoiceError(f"{message.__name__} is a header itself")
    start, end, fault = 0, len(data), None
    dumps: list[Dump] = []
    left = MOST_LINES
    try:
        if layout is Layout.FRAME:
            size = frame_size(data)
            start, end, fault = 4, min(end, 4 + size), frame_fault(size, len(data) - 4)
            dumps.append(Dump("Size of the frame", _lines(data, [Span(0, 4, "", "value", "int32", size)], 0, left)))
        if header and (message is None or message.__message__.kind is Kind.REQUEST):
            message, number = request_of(data[start:end], message, number)
    except FrameError as error:
        return Annotated(tuple(dumps), f"{_sentence(str(error))} {_NO_HEADER}")
    assert message is not None
    number = message.__message__.versions[-1] if number is None else number
    for _, part, part_version, last in sections(message, number, header=header):
        rest = data[start:end]
        spans, wrong = trace_until_fault(part, part_version, rest, exact=last)
        lines = _lines(rest, spans, start, left)
        left -= len(lines)
        dumps.append(Dump(f"{part.__name__} v{part_version}", lines))
        if wrong is not None:
            fault = f"{_fault(wrong, start)}{f'; and {fault}' if fault else ''}"
            break
        start += spans[-1].end if spans else 0
    said = [*([_sentence(fault), *([_NO_HEADER] if header else [])] if fault else []), *([_cut()] if left <= 0 else [])]
    return Annotated(tuple(dumps), " ".join(said))


def _fault(error: ProtocolError, start: int) -> str:
    at = "" if error.offset is None else f"byte {start + error.offset}: "
    field = f", in {error.path}" if error.path else ""
    return f"{at}{error.reason}{field}"


def _sentence(text: str) -> str:
    return visible(f"{text[:1].upper()}{text[1:]}.")


def _batches(data: bytes) -> Annotated:
    dumps: list[Dump] = []
    position, left = 0, MOST_LINES
    try:
        while position < len(data) and left > 0:
            header = check_batch(data, position)
            traced = trace_batch(data, position, MOST_BYTES)
            lines = _lines(data[position : header.end], traced.spans, position, left)
            left -= len(lines)
            compression = Compression(header.compression).name.lower()
            records = several(header.record_count, "record")
            dumps.append(Dump(f"Batch at byte {position}: {records}, {compression}", lines))
            if traced.payload_spans:
                lines = _lines(traced.payload, traced.payload_spans, 0, left)
                left -= len(lines)
                dumps.append(Dump(f"Its records, decompressed: {len(traced.payload):,} bytes", lines))
            position = header.end
    except CorruptRecordError as error:
        return Annotated(tuple(dumps), _sentence(str(error)))
    return Annotated(tuple(dumps), "" if left > 0 else _cut())


def _cut() -> str:
    return f"The first {MOST_LINES:,} lines."


def _lines(data: bytes, spans: list[Span], base: int, most: int) -> dict[str, tuple[Cell, ...]]:
    found: dict[str, tuple[Cell, ...]] = {}
    for at, line in enumerate(islice(labelled_lines(data, spans, base), max(0, most))):
        if line.offset is None:
            found[str(at)] = (Cell("…"), Cell(f"{line.left_out:,} bytes more"), Cell(""), Cell(""), Cell(""))
        else:
            found[str(at)] = (
                Cell(f"{line.offset:06x}"),
                Cell(line.raw.hex(" ")),
                Cell(visible(line.path)),
                Cell(line.label),
                Cell(visible(line.value)),
            )
    return found
