"""Pages of Kafka's messages and stored records, out of the declarations that Kohort's codecs are compiled from.

An API has a page with its request and its response, a record type one with its key and its value.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from typing import Final

from kohort.cli.hexdump import labelled
from kohort.protocol.catalogue import all_messages
from kohort.protocol.describe import Part, describe, example_of
from kohort.protocol.json_form import to_json
from kohort.protocol.message import Kind, Message
from kohort.protocol.messages import Api, apis
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.schema import LATEST, Array, Field, Struct, StructType
from kohort.protocol.stored import RecordType, cluster_metadata, record_types
from kohort.protocol.trace import Span, trace
from website.page import Page, cell, code, slug

APIS: Final = "reference/messages"
RECORDS: Final = "reference/records"


def pages() -> list[Page]:
    """The index, then all APIs, then other messages, then stored records."""
    of_apis = [_api_page(api) for api in apis()]
    of_types = [_record_page(record) for record in record_types()]
    known: set[type[Message]] = {message for api in apis() for message in (api.request, api.response)}
    known |= {message for record in record_types() for message in (record.key, record.value)}
    others = [_other_page(message) for message in all_messages().values() if message not in known]
    metadata = [_metadata_page(getattr(cluster_metadata, name)) for name in _metadata_records()]
    index = Page("reference/messages.md", ("Messages and records",), _index())
    return [index, *of_apis, *others, *of_types, *metadata]


def _metadata_records() -> list[str]:
    return [name for name in cluster_metadata.__all__ if name.endswith("Record") and name != "MetadataRecord"]


# Pages


_OPENING: Final = """# Messages and records

Every message of Kafka's protocol that Kohort speaks, and every record that a broker stores for itself. Each page has
the fields, their bytes, what each version changed, and an example that Kohort's own codec has encoded.

`kohort wire show NAME` prints the same in a terminal, and `kohort wire decode` reads bytes of your own.

## How to read a page

The boxes of a **diagram** are fields, in the order of their bytes. One with a solid border is as long as it says; a
dashed one is as long as its content. Boxes within a box are the fields of a struct, or of each element of an array
(`[]Topic`). `?` is a field that may be null. “Compact” lengths are varints: one byte for most.

In the table of **fields**, `3+` is a field that versions have from the third on, `0–2` one that later versions don't
have.

In an **example**, each line has a place in the message, bytes, the field that they belong to, its type, and its
value. Numbers in Kafka's protocol have their highest byte first.

## APIs

A client sends a request, the broker answers with a response of the same version.

| Key | API | Versions | Flexible from | What it is for |
| ---: | --- | --- | --- | --- |"""

_STORED: Final = """
“Flexible” versions have lengths as varints, and may have tagged fields: fields that a reader who doesn't know them
passes over.

## Stored records

What a broker writes to its internal topics.

| Topic | Type | Record | Versions of the value | What it holds |
| --- | ---: | --- | --- | --- |"""


def _index() -> str:
    lines = [_OPENING]
    for api in apis():
        first = _doc(api.request)
        link = f"[{api.name}](messages/{slug(api.name)}.md)"
        lines.append(f"| {api.key} | {link} | {_span(api.versions)} | {_flexible(api.request)} | {cell(first)} |")
    lines.append(_STORED)
    for record in record_types():
        link = f"[{record.name}](records/{slug(record.name)}.md)"
        about = _doc(record.value).removeprefix("Value: ")
        versions = _span(record.value.__message__.versions)
        lines.append(f"| `{record.topic}` | {record.number} | {link} | {versions} | {cell(about)} |")
    for name in _metadata_records():
        record = getattr(cluster_metadata, name)
        spec = record.__message__
        link = f"[{name}](records/{slug(name)}.md)"
        lines.append(f"| `__cluster_metadata` | {spec.key} | {link} | {_span(spec.versions)} | {cell(_doc(record))} |")
    return "\n".join(lines) + "\n"


def _api_page(api: Api) -> Page:
    flexible = _flexible(api.request)
    lines = [f"# {api.name}", "", f"API {api.key}, versions {_span(api.versions)}, flexible: {flexible}.", ""]
    lines += [_link_back(), ""]
    for message in (api.request, api.response):
        lines += _message(message, example_frame(message), "with its size and header")
    return Page(f"{APIS}/{slug(api.name)}.md", ("Messages and records", "APIs"), "\n".join(lines))


def _record_page(record: RecordType) -> Page:
    versions = _span(record.value.__message__.versions)
    lines = [
        f"# {record.name}",
        "",
        f"Record type {record.number} of `{record.topic}`, versions of the value {versions}.",
        "",
    ]
    lines += [_link_back(), "", "A record without a value deletes what its key names.", ""]
    for message, number, what in (
        (record.key, record.number, "Type"),
        (record.value, record.value.__message__.versions[-1], "Version"),
    ):
        data, spans = _encoded(message)
        opening = number.to_bytes(2, "big")
        moved = [_moved(span, 2) for span in spans]
        spans = [Span(0, 2, what, "value", "int16", number), *moved]
        lines += _message(message, (opening + data, spans), f"with the {what.lower()} before it")
    return Page(f"{RECORDS}/{slug(record.name)}.md", ("Messages and records", "Stored records"), "\n".join(lines))


def _metadata_page(message: type[Message]) -> Page:
    spec = message.__message__
    lines = [
        f"# {spec.name}",
        "",
        f"Record type {spec.key} of `__cluster_metadata`, versions {_span(spec.versions)}.",
        "",
    ]
    lines += [
        _link_back(),
        "",
        "It has no key. A frame version (1), the type and the version open it, each a varint.",
        "",
    ]
    lines += _message(message, _encoded(message), "without the frame", heading="Value")
    return Page(f"{RECORDS}/{slug(spec.name)}.md", ("Messages and records", "Stored records"), "\n".join(lines))


def _other_page(message: type[Message]) -> Page:
    spec = message.__message__
    kind = "Header of a message" if spec.kind is Kind.HEADER else "Data within other messages, or in a log"
    lines = [f"# {spec.name}", "", f"{kind}, versions {_span(spec.versions)}, flexible: {_flexible(message)}.", ""]
    lines += [_link_back(), "", *_message(message, _encoded(message), "by itself", heading="Layout")]
    return Page(f"{APIS}/{slug(spec.name)}.md", ("Messages and records", "Headers and embedded data"), "\n".join(lines))


def _link_back() -> str:
    return "[All messages and records](../messages.md) · [how to read a diagram](../messages.md#how-to-read-a-page)"


# Parts of a page


def _message(cls: type[Message], example: tuple[bytes, list[Span]], how: str, heading: str = "") -> Iterator[str]:
    spec = cls.__message__
    newest = spec.versions[-1]
    description = describe(cls, newest)
    name = heading or spec.name
    yield from (f"## {name}", "", cell(description.doc), "", '<div class="wire" markdown="0">')
    if description.header:
        yield _row(description.header, description.header_parts)
    yield _row(f"{spec.name} v{newest}", description.parts)
    yield from ("</div>", "", f"### Fields of {name}", "")
    rows = list(_fields(cls, ""))
    if rows:
        yield from ("| Field | Type | Bytes | Versions | Meaning |", "| --- | --- | ---: | --- | --- |", *rows, "")
    else:
        yield from ("None: to be there is all that it says.", "")
    yield from (f"### Versions of {name}", "", *_versions(cls, dict(description.history)), "")
    yield from ('??? abstract "Schema of each version"', "", "    ```text", *_schemas(cls), "    ```", "")
    data, spans = example
    yield from (
        f"### Example of {name}",
        "",
        f"Version {newest}, as JSON and on the wire, {how}: {len(data)} bytes.",
        "",
    )
    pretty = json.dumps(to_json(example_of(cls, newest), newest), indent=2, ensure_ascii=False)
    yield from ("```json", pretty, "```", "", "```text")
    for line in labelled(data, spans):
        yield "".join(text for text, _ in line).rstrip()
    yield from ("```", "")


def _row(title: str, parts: Iterable[Part]) -> str:
    """The byte diagram: a box a field, as wide as it is long where that is fixed."""
    return f'<p>{html.escape(title)}</p><div class="wire-row">{"".join(map(_box, parts)) or _EMPTY}</div>'


_EMPTY: Final = '<div class="wire-box"><b>no fields</b></div>'


def _box(part: Part) -> str:
    name = html.escape(part.name) + ("?" if part.nullable else "")
    size = "1 byte" if part.size == 1 else f"{part.size} bytes" if part.size else "any length"
    label = f"<b>{name}</b><span>{html.escape(part.type)}</span><i>{size}</i>"
    if not part.parts:
        kind = " wire-fixed" if part.size else ""
        return f'<div class="wire-box{kind}" style="--bytes:{part.size or 6}">{label}</div>'
    inner = "".join(map(_box, part.parts))
    return f'<div class="wire-box wire-struct">{label}<div class="wire-row">{inner}</div></div>'


def _fields(cls: type[Struct], indent: str, seen: tuple[type[Struct], ...] = ()) -> Iterator[str]:
    for field in cls.__wire_fields__:
        kind = field.type.element if isinstance(field.type, Array) else field.type
        size = str(field.type.size or "") if not isinstance(field.type, (Array, StructType)) else ""  # type: ignore[attr-defined]
        notes = []
        if field.nullable_since <= LATEST:
            notes.append(
                "may be null" if field.nullable_since <= field.since else f"may be null from v{field.nullable_since}"
            )
        if field.tag is not None:
            notes.append(
                f"tagged field {field.tag}"
                + (f" from v{field.tagged_since}" if field.tagged_since > field.since else "")
            )
        doc = cell(field.doc) + (f" *{'; '.join(notes)}*" if notes else "")
        yield f"| {indent}`{field.name}` | {code(field.type.name)} | {size} | {_lifetime(field)} | {doc} |"
        if isinstance(kind, StructType) and kind.cls not in seen:
            yield from _fields(kind.cls, f"{indent}&emsp;", (*seen, kind.cls))


def _lifetime(field: Field) -> str:
    if field.until >= LATEST:
        return f"{field.since}+"
    return str(field.since) if field.since == field.until else f"{field.since}–{field.until}"


def _versions(cls: type[Message], history: dict[int, str]) -> Iterator[str]:
    """What each version changed: in words, as the declaration has it, and the fields that came and went."""
    spec = cls.__message__
    first = spec.versions[0]
    if len(spec.versions) == 1:
        yield f"There is version {first} alone."
        return
    yield from ("| Version | What it changed | New fields | Fields gone |", "| ---: | --- | --- | --- |")
    before = _paths(cls, first)
    yield f"| {first} | the first that is spoken | | |"
    for version in spec.versions[1:]:
        now = _paths(cls, version)
        came, went = ([path for path in some if path not in others] for some, others in ((now, before), (before, now)))
        words = history.get(version) or ("flexible" if version == spec.flexible_since else "")
        if not words and not came and not went:
            words = "nothing in the bytes"
        yield f"| {version} | {cell(words)} | {_names(came)} | {_names(went)} |"
        before = now


def _paths(cls: type[Struct], version: int, prefix: str = "", seen: tuple[type[Struct], ...] = ()) -> list[str]:
    found = []
    for field in cls.__wire_fields__:
        if field.in_version(version):
            found.append(prefix + field.name)
            kind = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(kind, StructType) and kind.cls not in seen:
                found += _paths(kind.cls, version, f"{prefix}{field.name}.", (*seen, kind.cls))
    return found


def _names(paths: list[str]) -> str:
    """Fields by their paths; of a struct that came or went as a whole, its own alone."""
    outermost = [path for path in paths if not any(path.startswith(f"{other}.") for other in paths)]
    return ", ".join(f"`{path}`" for path in outermost)


def _schemas(cls: type[Message]) -> Iterator[str]:
    """The schema of each version, those that have the same one together."""
    groups: list[tuple[list[int], str]] = []
    for version in cls.__message__.versions:
        schema = describe(cls, version).schema
        if groups and groups[-1][1] == schema:
            groups[-1][0].append(version)
        else:
            groups.append(([version], schema))
    for versions, schema in groups:
        yield f"    v{versions[0]}{f' to v{versions[-1]}' if versions[1:] else ''}: {schema}"


# Examples


def _encoded(cls: type[Message]) -> tuple[bytes, list[Span]]:
    version = cls.__message__.versions[-1]
    data = example_of(cls, version).encode(version)
    return data, trace(cls, version, data)[1]


def example_frame(cls: type[Message]) -> tuple[bytes, list[Span]]:
    """A request or response in its newest version, as it goes over the wire, and what each byte is."""
    spec = cls.__message__
    version = spec.versions[-1]
    number = spec.header_version(version)
    if spec.kind is Kind.REQUEST:
        header: Message = RequestHeader(
            request_api_key=spec.key, request_api_version=version, correlation_id=42, client_id="my-app"
        )
    else:
        header = ResponseHeader(correlation_id=42)
    body = header.encode(number) + example_of(cls, version).encode(version)
    frame = len(body).to_bytes(4, "big") + body
    _, spans, end = trace(type(header), number, frame, 4)
    _, own, _ = trace(cls, version, frame, end)
    moved = [_moved(span, by) for some, by in ((spans, 4), (own, end)) for span in some]
    return frame, [Span(0, 4, "message_size", "value", "int32", len(body)), *moved]


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by, span.path, span.role, span.type, span.value)


# Words


def _doc(cls: type[Message]) -> str:
    return (cls.__doc__ or "").split("\n", 1)[0].strip()


def _span(versions: range) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}–{versions[-1]}"


def _flexible(cls: type[Message]) -> str:
    since = cls.__message__.flexible_since
    return f"v{max(since, cls.__message__.versions[0])}" if since <= cls.__message__.versions[-1] else "no"
