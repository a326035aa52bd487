"""Requests as bytes, also larger ones than anybody would make of objects."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kohort.broker.handlers import served_apis
from kohort.protocol.message import Request
from kohort.protocol.messages import api
from kohort.protocol.messages.headers import RequestHeader
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.schema import Array, Field, Scalar, Struct, StructType

CLIENT_ID = "attacker"


def frame(request: Request, version: int, *, client_id: str = CLIENT_ID) -> bytes:
    """A request with its size and header."""
    key = request.__message__.key
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id=client_id)
    body = header.encode(api(key).request_header_version(version)) + request.encode(version)
    return struct.pack(">i", len(body)) + body


def longest_arrays(length: int) -> Iterator[tuple[str, bytes]]:
    """For each array in a request of each served API, in its newest version: one with so many elements in that array.

    Yields its name, such as "DeleteGroups.groups_names", and the frame.
    """
    for _, served in served_apis():
        version = served.versions[1]
        for path in _arrays(served.request, version):
            request = served.request(**_filled(served.request, version, path, length))
            if isinstance(request, ProduceRequest):
                request.acks = 1  # without, it isn't answered
            name = served.request.__message__.name.removesuffix("Request")
            yield f"{name}.{'.'.join(path)}", frame(request, version)


def _arrays(cls: type[Struct], version: int, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays in a struct; those in structs of an array are reached through its first element."""
    for field in cls.__wire_fields__:
        if not field.in_version(version):
            continue
        kind = field.type
        if isinstance(kind, Array):
            yield (*path, field.attr)
            if isinstance(kind.element, StructType):
                yield from _arrays(kind.element.cls, version, (*path, field.attr))
        elif isinstance(kind, StructType):
            yield from _arrays(kind.cls, version, (*path, field.attr))


def _filled(cls: type[Struct], version: int, path: tuple[str, ...], length: int) -> dict[str, object]:
    """Values of a struct's fields that lead to an array of that length."""
    (field,) = (each for each in cls.__wire_fields__ if each.attr == path[0])
    kind, rest = field.type, path[1:]
    if isinstance(kind, StructType):
        return {field.attr: kind.cls(**_filled(kind.cls, version, rest, length))}
    assert isinstance(kind, Array)
    if rest:
        assert isinstance(kind.element, StructType)
        inner = kind.element.cls
        return {field.attr: [inner(**_filled(inner, version, rest, length))]}
    return {field.attr: _elements(field, kind, length)}


def _elements(field: Field, kind: Array, length: int) -> list[object]:
    element = kind.element
    if isinstance(element, StructType):
        named = next(
            (each.attr for each in element.cls.__wire_fields__ if getattr(each.type, "name", "") == "string"), None
        )
        if named is None or not isinstance(element.cls, type):
            return [element.cls()] * length
        return [element.cls(**{named: f"n{number}"}) for number in range(length)]
    assert isinstance(element, Scalar)
    if element.name == "string":
        return [f"n{number}" for number in range(length)]
    if element.name in ("int32", "int64"):
        return list(range(length))
    return [element.zero] * length
