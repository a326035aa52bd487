"""Interprets a declaration step by step, noting which bytes are which field.

Slow and careful where compiled codecs are fast: it labels every byte for the inspector (`trace`), and says which
field is at fault when a codec has met bytes or values that don't fit (`explain_bytes`, `explain_value`). Being
written apart from the compiler, it is also the compiler's oracle in tests.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kohort.protocol.errors import ProtocolError, UnsupportedVersionError
from kohort.protocol.primitives import MAX_UVARINT
from kohort.protocol.schema import Array, Field, Scalar, Struct, StructType, Type

if TYPE_CHECKING:
    from kohort.protocol.message import Message

__all__ = ["Span", "explain_bytes", "explain_value", "trace", "trace_until_fault"]


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `end` of a message, and what they are.

    Attributes:
        start, end: byte offsets from the start of the message; `end` is exclusive.
        path: Kafka's name of the field: "Topics[0].Name"; "" for the message itself.
        role: "value", "length" (of a string, blob or array), "null marker", "tag count", "tag" (number and size).
        type: the field's wire type, such as "int32".
        value: what the bytes say.
    """

    start: int
    end: int
    path: str
    role: str
    type: str
    value: Any


def trace(cls: type[Message], version: int, data: bytes, start: int = 0) -> tuple[Message, list[Span], int]:
    """Decode the message at `start`, with a span for every run of bytes that means one thing.

    Returns:
        The message, its spans in order, and the offset where it ends (counted, like `start`, from the start of `data`).

    Raises:
        ProtocolError: the bytes are not the message; `trace_until_fault` gives the spans up to there.
    """
    tracer = _Tracer(cls, version, data, start)
    message = tracer.struct(cls)
    return message, tracer.spans, tracer.pos


def trace_until_fault(
    cls: type[Message], version: int, data: bytes, start: int = 0, *, whole: bool = True
) -> tuple[list[Span], ProtocolError | None]:
    """The spans of a message that may be malformed, as far as they go, and the fault if there is one.

    `whole` says that nothing may follow the message.
    """
    tracer = _Tracer(cls, version, data, start)
    try:
        tracer.struct(cls)
        if whole:
            tracer.check_end()
    except ProtocolError as fault:
        return tracer.spans, fault
    return tracer.spans, None


def explain_bytes(cls: type[Message], version: int, data: bytes, start: int, whole: bool) -> ProtocolError:
    """Why the bytes at `start` aren't the message; `whole` if nothing may follow it."""
    _, fault = trace_until_fault(cls, version, data, start, whole=whole)
    reason = "codec and trace disagree: please report these bytes"
    return fault or ProtocolError(cls.__message__.name, version, "", None, reason)


class _Tracer:
    """A position in the input and in the declaration."""

    def __init__(self, cls: type[Message], version: int, data: bytes, start: int) -> None:
        self.spec = cls.__message__
        self.version = version
        self.flexible = self.spec.flexible_in(version)
        self.data = data
        self.start = start
        self.pos = start
        self.path: list[str] = []
        self.spans: list[Span] = []

    def fault(self, reason: str, at: int | None = None) -> ProtocolError:
        offset = (self.pos if at is None else at) - self.start
        return ProtocolError(self.spec.name, self.version, _join(self.path), offset, reason)

    def check_end(self) -> None:
        if self.pos < len(self.data):
            raise self.fault(f"{len(self.data) - self.pos} bytes left over after the message")

    @contextmanager
    def at(self, step: str) -> Iterator[None]:
        self.path.append(step)
        yield
        self.path.pop()  # kept where a fault passes, so that it can tell the path

    def span(self, start: int, role: str, type_name: str, value: Any) -> None:
        self.spans.append(Span(start - self.start, self.pos - self.start, _join(self.path), role, type_name, value))

    # Bytes.

    def take(self, size: int, what: str) -> bytes:
        left = len(self.data) - self.pos
        if size > left:
            raise self.fault(f"{what} needs {size} bytes, {left} left")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def uvarint(self, what: str) -> int:
        begin = self.pos
        value = shift = 0
        while True:
            byte = self.take(1, what)[0]
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

    # Structs.

    def struct(self, cls: type[Struct]) -> Any:
        values: dict[str, Any] = {}
        tagged: dict[int, Field] = {}
        for field in cls.__wire_fields__:
            if field.in_version(self.version):
                if field.tag is not None and self.flexible and field.tagged_in(self.version):
                    tagged[field.tag] = field
                else:
                    with self.at(field.name):
                        values[field.attr] = self.value(field, field.type, field.nullable_in(self.version))
        if self.flexible:
            self.tags(values, tagged)
        return cls(**values)

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
            if tag in tagged:
                field = tagged[tag]
                with self.at(field.name):
                    body = self.pos
                    if body + size > len(self.data):
                        raise self.fault(f"tagged field of {size} bytes, {len(self.data) - body} left")
                    values[field.attr] = self.value(field, field.type, field.nullable_in(self.version))
                    if self.pos != body + size:
                        raise self.fault(f"tagged field of {size} bytes, but its value takes {self.pos - body}", body)
            else:
                with self.at(f"tag {tag}"):
                    begin = self.pos
                    raw = self.take(size, "a tagged field")
                    values.setdefault("unknown_tags", {})[tag] = raw
                    self.span(begin, "value", "unknown", raw)

    # Values.

    def value(self, field: Field, kind: Type, nullable: bool) -> Any:
        if isinstance(kind, StructType):
            return self.nullable_struct(field, kind) if nullable else self.struct(kind.cls)
        if isinstance(kind, Array):
            return self.array(field, kind, nullable)
        assert isinstance(kind, Scalar)
        if not kind.code:
            return self.blob(field, kind, nullable)
        begin = self.pos
        (value,) = struct.unpack(f">{kind.code}", self.take(kind.size, kind.name))
        if kind.name == "uuid":
            value = uuid.UUID(bytes=value)
        self.span(begin, "value", kind.name, value)
        return value

    def nullable_struct(self, field: Field, kind: StructType) -> Any:
        begin = self.pos
        null = field.null_marker(self.version)
        (marker,) = struct.unpack(">b", self.take(1, "the null marker"))
        if marker not in (null, 1):
            raise self.fault(f"null marker is {marker}; 1 means present, {null} null", begin)
        self.span(begin, "null marker", "int8", marker)
        return self.struct(kind.cls) if marker == 1 else None

    def length(self, field: Field, kind: Type, nullable: bool) -> int | None:
        """The length before a value of varying size; None for null."""
        begin = self.pos
        what = f"the length of the {'array' if isinstance(kind, Array) else kind.name}"
        if self.flexible and field.compact:
            length = self.uvarint(what) - 1
            type_name = "uvarint"
        else:
            code, size, type_name = (">h", 2, "int16") if kind.name == "string" else (">i", 4, "int32")
            (length,) = struct.unpack(code, self.take(size, what))
        if length < -1:
            raise self.fault(f"{what} is {length}", begin)
        if length == -1 and not nullable:
            raise self.fault(
                f"null {'array' if isinstance(kind, Array) else kind.name} where null is not allowed", begin
            )
        self.span(begin, "length", type_name, None if length < 0 else length)
        return None if length < 0 else length

    def blob(self, field: Field, kind: Scalar, nullable: bool) -> Any:
        length = self.length(field, kind, nullable)
        if length is None:
            return None
        begin = self.pos
        value: Any = self.take(length, f"{kind.name} of length {length}")
        if kind.name == "string":
            try:
                value = value.decode()
            except UnicodeDecodeError as error:
                raise self.fault(f"invalid UTF-8: {error.reason}", begin + error.start) from None
        elif kind.name == "records":
            value = memoryview(self.data)[begin : self.pos]
        self.span(begin, "value", kind.name, value)
        return value

    def array(self, field: Field, kind: Array, nullable: bool) -> Any:
        begin = self.pos
        length = self.length(field, kind, nullable)
        if length is None:
            return None
        scalar = isinstance(kind.element, Scalar)
        least = max(1, kind.element.size if isinstance(kind.element, Scalar) else 0)
        left = len(self.data) - self.pos
        if length * least > left:
            raise self.fault(f"array of {length} elements needs at least {length * least} bytes, {left} left", begin)
        items = []
        for index in range(length):
            with self.at(f"[{index}]"):
                items.append(self.value(field, kind.element, False))
        return tuple(items) if scalar else items


def _join(path: Sequence[str]) -> str:
    """("Topics", "[0]", "Name") → "Topics[0].Name"."""
    return ".".join(path).replace(".[", "[")


def explain_value(cls: type[Message], version: int, message: Any) -> ProtocolError:
    """Why a message can't be encoded in a version."""
    try:
        _Checker(cls, version).struct(cls, message)
    except ProtocolError as error:
        return error
    return ProtocolError(
        cls.__message__.name, version, "", None, "codec and trace disagree: please report this message"
    )


class _Checker:
    """Walks a message's values beside its declaration."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.spec = cls.__message__
        self.version = version
        self.flexible = self.spec.flexible_in(version)
        self.path: list[str] = []

    def fault(self, reason: str) -> ProtocolError:
        return ProtocolError(self.spec.name, self.version, _join(self.path), None, reason)

    def struct(self, cls: type[Struct], value: Any) -> None:
        if not isinstance(value, cls):
            raise self.fault(f"{cls.__qualname__} wanted, not {_shown(value)}")
        for field in cls.__wire_fields__:
            inner = getattr(value, field.attr)
            self.path.append(field.name)
            if field.in_version(self.version):
                self.value(field, field.type, inner, field.nullable_in(self.version))
            elif not field.ignorable and inner != field.default and not _both_empty(inner, field.default):
                raise UnsupportedVersionError(
                    self.spec.name, self.version, _join(self.path), None,
                    f"set to {_shown(inner)}, but this version has no such field",
                )  # fmt: skip
            self.path.pop()
        if self.flexible and value.unknown_tags is not None:
            self.tags(value.unknown_tags)

    def tags(self, tags: Any) -> None:
        self.path.append("unknown_tags")
        if not isinstance(tags, dict):
            raise self.fault(f"dict wanted, not {_shown(tags)}")
        for tag, raw in tags.items():
            if not isinstance(tag, int) or not 0 <= tag <= MAX_UVARINT:
                raise self.fault(f"tag {tag!r} is not an unsigned 32-bit number")
            if not isinstance(raw, (bytes, bytearray, memoryview)):
                raise self.fault(f"bytes wanted for tag {tag}, not {_shown(raw)}")
        self.path.pop()

    def value(self, field: Field, kind: Type, value: Any, nullable: bool) -> None:
        if value is None:
            if not nullable and not field.optional:
                raise self.fault("null where null is not allowed")
        elif isinstance(kind, StructType):
            self.struct(kind.cls, value)
        elif isinstance(kind, Array):
            if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or not hasattr(value, "__iter__"):
                raise self.fault(f"list or tuple wanted, not {_shown(value)}")
            for index, item in enumerate(value):
                self.path.append(f"[{index}]")
                self.value(field, kind.element, item, False)
                self.path.pop()
        else:
            assert isinstance(kind, Scalar)
            self.scalar(field, kind, value)

    def scalar(self, field: Field, kind: Scalar, value: Any) -> None:
        if kind.name == "uuid":
            if not isinstance(value, uuid.UUID):
                raise self.fault(f"uuid.UUID wanted, not {_shown(value)}")
        elif kind.code:
            try:
                struct.pack(f">{kind.code}", value)
            except (struct.error, OverflowError, TypeError):
                raise self.fault(f"{kind.name} wanted, not {_shown(value)}") from None
        elif kind.name == "string":
            if not isinstance(value, str):
                raise self.fault(f"str wanted, not {_shown(value)}")
            try:
                size = len(value.encode())
            except UnicodeEncodeError as error:
                raise self.fault(f"can't be written as UTF-8: {error.reason}") from None
            if size > 32767 and not (self.flexible and field.compact):
                raise self.fault(f"string of {size} bytes; 32767 is the most that this version can carry")
        else:
            try:
                memoryview(value)
            except TypeError:
                raise self.fault(f"bytes wanted, not {_shown(value)}") from None


def _both_empty(left: Any, right: Any) -> bool:
    return isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and not left and not right


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
