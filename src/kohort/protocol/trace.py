"""Interprets a declaration step by step, recording the bytes of each field.

It is slow and thorough where compiled codecs are fast: it labels every byte for the inspector (`trace`), and finds the
field at fault when a codec fails (`explain_bytes`, `explain_value`). It is independent of the compiler, and so the
compiler's oracle in tests.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from kohort.protocol.errors import ProtocolError, UnsupportedVersionError, shown
from kohort.protocol.message_spec import MessageStruct
from kohort.protocol.primitives import BOOLEANS, MAX_STRING, MAX_UVARINT, Buffer, as_bytes, check_array
from kohort.protocol.schema import Array, Field, Scalar, Struct, StructType, Type, fields_of

__all__ = ["Span", "explain_bytes", "explain_value", "trace", "trace_until_fault"]

M = TypeVar("M", bound=MessageStruct)


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `end` of a message, with their meaning.

    Attributes:
        start, end: byte offsets from the start of the message; `end` is exclusive.
        path: Kafka's name of the field: "Topics[0].Name"; "" for the message itself.
        role: "value", "length" (of a string, blob or array), "null marker", "tag count", "tag" (number and size).
        type: the field's wire type, such as "int32".
        value: the decoded value.
    """

    start: int
    end: int
    path: str
    role: str
    type: str
    value: Any


def trace(cls: type[M], version: int, data: Buffer, start: int = 0) -> tuple[M, list[Span], int]:
    """Decodes the message at `start`, with a span for each value, length, marker and tag.

    Returns:
        The message, its spans in order, and the offset where it ends (counted, like `start`, from the start of `data`).

    Raises:
        UnsupportedVersionError: no such version.
        ProtocolError: the bytes aren't a valid message; `trace_until_fault` returns the spans up to the fault.
    """
    tracer = _Tracer(cls, version, data, start)
    message = tracer.struct(cls)
    return message, tracer.spans, tracer.pos


def trace_until_fault(
    cls: type[MessageStruct], version: int, data: Buffer, start: int = 0, *, exact: bool = True
) -> tuple[list[Span], ProtocolError | None]:
    """Returns the spans of a message up to a fault, and the fault if there is one.

    With `exact`, nothing may follow the message.
    """
    tracer = _Tracer(cls, version, data, start)
    return tracer.spans, tracer.fault_of(cls, exact)


def explain_bytes(cls: type[MessageStruct], version: int, data: Buffer, start: int, exact: bool) -> ProtocolError:
    """Explains why the bytes at `start` aren't a valid message. With `exact`, nothing may follow it."""
    fault = _Tracer(cls, version, data, start, keep=False).fault_of(cls, exact)
    reason = "codec and trace disagree: please report these bytes"
    return fault or ProtocolError(cls.__message__.name, version, "", None, reason)


class _Tracer:
    """A position in the input and in the declaration.

    With `keep` it makes values and spans; without, it only finds the fault, with little memory, so that a large message
    with a small fault is cheap.
    """

    def __init__(self, cls: type[MessageStruct], version: int, data: Buffer, start: int, *, keep: bool = True) -> None:
        self.spec = cls.__message__
        self.spec.check_version(version)
        self.version = version
        self.flexible = self.spec.flexible_in(version)
        self.data = data if isinstance(data, bytes) else bytes(memoryview(data))
        self.start = start
        self.pos = start
        self.keep = keep
        self.path: list[str | int] = []  # unchanged when a fault is raised, to locate it
        self.spans: list[Span] = []

    def fault_of(self, cls: type[MessageStruct], exact: bool) -> ProtocolError | None:
        try:
            self.struct(cls)
            if exact and self.pos < len(self.data):
                raise self.fault(f"{len(self.data) - self.pos} bytes left over after the message")
        except ProtocolError as fault:
            return fault
        return None

    def fault(self, reason: str, at: int | None = None) -> ProtocolError:
        offset = (self.pos if at is None else at) - self.start
        return ProtocolError(self.spec.name, self.version, _join(self.path), offset, reason)

    def span(self, start: int, role: str, type_name: str, value: Any) -> None:
        if self.keep:
            self.spans.append(Span(start - self.start, self.pos - self.start, _join(self.path), role, type_name, value))

    # Bytes

    def skip(self, size: int, what: str) -> int:
        """Skips `size` bytes, and returns where they start."""
        begin = self.pos
        left = len(self.data) - begin
        if size > left:
            raise self.fault(f"{what} needs {size} bytes, {left} left")
        self.pos += size
        return begin

    def uvarint(self, what: str) -> int:
        begin = self.pos
        value = shift = 0
        while True:
            byte = self.data[self.skip(1, what)]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= 35:
                raise self.fault(f"{what} is a varint of more than five bytes", begin)
        if value > MAX_UVARINT:
            raise self.fault(f"{what} is a varint of more than 32 bits", begin)
        if not value and self.pos > begin + 1:
            raise self.fault(f"{what} is a zero written in {self.pos - begin} bytes", begin)
        return value

    # Structs

    def struct(self, cls: type[Struct]) -> Any:
        plain, tagged = fields_of(cls, self.version, self.flexible)
        values: dict[str, Any] = {}
        for field in plain:
            self.path.append(field.name)
            values[field.attr] = self.value(field, field.type, field.nullable_in(self.version))
            self.path.pop()
        if self.flexible:
            self.tags(values, tagged)
        return cls(**values) if self.keep else None

    def tags(self, values: dict[str, Any], tagged: dict[int, Field]) -> None:
        begin = self.pos
        count = self.uvarint("the number of tagged fields")
        self.span(begin, "tag count", "uvarint", count)
        last = -1
        for _ in range(count):
            begin = self.pos
            tag = self.uvarint("a tag")
            size = self.uvarint("the size of a tagged field")
            if tag <= last:
                raise self.fault(f"tag {tag} after tag {last}; tags must ascend", begin)
            last = tag
            self.span(begin, "tag", "uvarint", (tag, size))
            field = tagged.get(tag)
            self.path.append(f"tag {tag}" if field is None else field.name)
            begin = self.skip(size, "a tagged field")
            if field is None:
                if self.keep:
                    raw = values.setdefault("unknown_tags", {})[tag] = self.data[begin : self.pos]
                    self.span(begin, "value", "unknown", raw)
            else:
                end, self.pos = self.pos, begin
                values[field.attr] = self.value(field, field.type, field.nullable_in(self.version))
                if self.pos != end:
                    raise self.fault(f"tagged field of {size} bytes, but its value takes {self.pos - begin}", begin)
            self.path.pop()

    # Values

    def value(self, field: Field, kind: Type, nullable: bool) -> Any:
        if isinstance(kind, Scalar):
            return self.fixed(kind) if kind.code else self.blob(field, kind, nullable)
        if isinstance(kind, Array):
            return self.array(field, kind, nullable)
        assert isinstance(kind, StructType)
        return self.nullable_struct(field, kind) if nullable else self.struct(kind.cls)

    def fixed(self, kind: Scalar) -> Any:
        begin = self.skip(kind.size, kind.name)
        if not self.keep:
            return None
        (value,) = struct.unpack_from(f">{kind.code}", self.data, begin)
        if kind.name == "uuid":
            value = uuid.UUID(bytes=value)
        self.span(begin, "value", kind.name, value)
        return value

    def nullable_struct(self, field: Field, kind: StructType) -> Any:
        null = field.null_marker(self.version)
        begin = self.skip(1, "the null marker")
        (marker,) = struct.unpack_from(">b", self.data, begin)
        if marker not in (null, 1):
            raise self.fault(f"null marker is {marker}; 1 means present, {null} null", begin)
        self.span(begin, "null marker", "int8", marker)
        return self.struct(kind.cls) if marker == 1 else None

    def length(self, field: Field, kind: Type, nullable: bool) -> int | None:
        """Reads the length of a variable-size value; None for null."""
        begin = self.pos
        thing = "array" if isinstance(kind, Array) else kind.name
        what = f"the length of the {thing}"
        if self.flexible and field.compact:
            length = self.uvarint(what) - 1
            type_name = "uvarint"
        else:
            code, size, type_name = (">h", 2, "int16") if thing == "string" else (">i", 4, "int32")
            (length,) = struct.unpack_from(code, self.data, self.skip(size, what))
        if length < -1 or (thing == "string" and length > MAX_STRING):
            raise self.fault(f"{what} is {length}", begin)
        if length == -1 and not nullable:
            raise self.fault(f"null {thing} where null is not allowed", begin)
        self.span(begin, "length", type_name, None if length < 0 else length)
        return None if length < 0 else length

    def blob(self, field: Field, kind: Scalar, nullable: bool) -> Any:
        length = self.length(field, kind, nullable)
        if length is None:
            return None
        begin = self.skip(length, f"{kind.name} of length {length}")
        value: Any = None
        if kind.name == "string":
            try:
                value = self.data[begin : self.pos].decode()
            except UnicodeDecodeError as error:
                raise self.fault(f"invalid UTF-8: {error.reason}", begin + error.start) from None
        elif self.keep:
            view = memoryview(self.data)[begin : self.pos]
            value = view if kind.name == "records" else bytes(view)
        self.span(begin, "value", kind.name, value)
        return value

    def array(self, field: Field, kind: Array, nullable: bool) -> Any:
        begin = self.pos
        length = self.length(field, kind, nullable)
        if length is None:
            return None
        element = kind.element
        scalar = isinstance(element, Scalar)
        least = max(1, element.size if isinstance(element, Scalar) else 0)
        left = len(self.data) - self.pos
        if length * least > left:
            raise self.fault(f"array of {length} elements needs at least {length * least} bytes, {left} left", begin)
        if isinstance(element, Scalar) and element.code and not self.keep:
            self.skip(length * element.size, kind.name)
            return None
        items = []
        self.path.append(0)
        for index in range(length):
            self.path[-1] = index
            item = self.value(field, element, False)
            if self.keep:
                items.append(item)
        self.path.pop()
        return tuple(items) if scalar else items


def _join(path: Iterable[str | int]) -> str:
    """("Topics", 0, "Name") → "Topics[0].Name"."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def explain_value(cls: type[MessageStruct], version: int, message: Any) -> ProtocolError:
    """Explains why a message can't be encoded in a version."""
    checker = _Checker(cls, version)
    try:
        checker.struct(cls, message)
    except ProtocolError as error:
        return error
    except Exception as error:  # a value's own methods may raise anything
        return checker.fault(f"can't be encoded: {type(error).__name__}")
    reason = "codec and trace disagree: please report this message"
    return ProtocolError(cls.__message__.name, version, "", None, reason)


class _Checker:
    """Walks a message's values along its declaration."""

    def __init__(self, cls: type[MessageStruct], version: int) -> None:
        self.spec = cls.__message__
        self.version = version
        self.flexible = self.spec.flexible_in(version)
        self.path: list[str | int] = []

    def fault(self, reason: str) -> ProtocolError:
        return ProtocolError(self.spec.name, self.version, _join(self.path), None, reason)

    def struct(self, cls: type[Struct], value: Any) -> None:
        if not isinstance(value, cls):
            raise self.fault(f"{cls.__qualname__} wanted, not {shown(value)}")
        for field in cls.__wire_fields__:
            inner = getattr(value, field.attr)
            self.path.append(field.name)
            if field.in_version(self.version):
                self.value(field, field.type, inner, field.nullable_in(self.version))
            elif not field.ignorable and not _same(inner, field.default):
                raise self.absent(inner)
            self.path.pop()
        if value.unknown_tags is not None:
            self.path.append("unknown_tags")
            if self.flexible:
                self.tags(value.unknown_tags, fields_of(cls, self.version, True)[1])
            elif value.unknown_tags:
                raise self.absent(value.unknown_tags)
            self.path.pop()

    def absent(self, value: Any) -> UnsupportedVersionError:
        reason = f"set to {shown(value)}, but this version has no such field"
        return UnsupportedVersionError(self.spec.name, self.version, _join(self.path), None, reason)

    def tags(self, tags: Any, known: dict[int, Field]) -> None:
        if not isinstance(tags, dict):
            raise self.fault(f"dict wanted, not {shown(tags)}")
        for tag, raw in tags.items():
            if not isinstance(tag, int) or not 0 <= tag <= MAX_UVARINT:
                raise self.fault(f"tag {shown(tag)} is not an unsigned 32-bit number")
            if tag in known:
                raise self.fault(f"tag {tag} is known, as {known[tag].name}")
            self.buffer(raw, f" for tag {tag}")

    def buffer(self, value: Any, what: str = "") -> None:
        try:
            as_bytes(value)
        except (TypeError, ValueError, BufferError):
            raise self.fault(f"bytes wanted{what}, not {shown(value)}") from None

    def value(self, field: Field, kind: Type, value: Any, nullable: bool) -> None:
        if value is None:
            if not nullable and not field.optional:
                raise self.fault("null where null is not allowed")
        elif isinstance(kind, StructType):
            self.struct(kind.cls, value)
        elif isinstance(kind, Array):
            self.array(field, kind, value)
        else:
            assert isinstance(kind, Scalar)
            self.scalar(field, kind, value)

    def array(self, field: Field, kind: Array, value: Any) -> None:
        try:
            check_array(value)
            len(value)
            items = iter(value)
        except TypeError:
            raise self.fault(f"list or tuple wanted, not {shown(value)}") from None
        self.path.append(0)
        for index, item in enumerate(items):
            self.path[-1] = index
            self.value(field, kind.element, item, False)
        self.path.pop()

    def scalar(self, field: Field, kind: Scalar, value: Any) -> None:
        if kind.name == "uuid":
            good = isinstance(value, uuid.UUID)
        elif kind.name == "bool":
            good = value in BOOLEANS
        elif kind.name == "string":
            good = isinstance(value, str)
            if good:
                self.string(value)
        elif kind.code:
            try:
                struct.pack(f">{kind.code}", value)
                good = True
            except (struct.error, OverflowError, TypeError):
                good = False
        else:
            self.buffer(value)
            good = True
        if not good:
            raise self.fault(f"{'str' if kind.name == 'string' else kind.name} wanted, not {shown(value)}")

    def string(self, value: str) -> None:
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise self.fault(f"can't be written as UTF-8: {error.reason}") from None
        if size > MAX_STRING:
            raise self.fault(f"string of {size} bytes; {MAX_STRING} is the most that Kafka takes")


def _same(value: Any, default: Any) -> bool:
    """Whether a value is its field's default; an empty list equals an empty tuple."""
    if isinstance(default, (list, tuple)):
        return value is not None and len(value) == 0
    return bool(value == default)
