"""Generates the source of a decoder from a declaration; `codec` describes the source."""

from __future__ import annotations

import struct
from typing import Any

from kohort.protocol import primitives, trace
from kohort.protocol.emitter import Emitter
from kohort.protocol.errors import ProtocolError
from kohort.protocol.message_spec import MessageStruct
from kohort.protocol.schema import NO_UUID, Field, Scalar, Struct, StructType, fields_of

__all__ = ["Decoder"]

FAULTS = (struct.error, IndexError, ValueError, OverflowError)
"""Exceptions of a decoder's fast path on invalid bytes; `trace` then explains them."""


class Decoder(Emitter):
    """Generates `decode`, `read` and `read_slices`.

    Fixed-size values are collected in a run (`self.run`: format characters and targets) until the content of a
    variable-size value is read; then the run is flushed as one `struct` call.
    """

    def __init__(self, cls: type[MessageStruct], version: int) -> None:
        super().__init__(cls, version)
        self.run: list[tuple[str, str]] = []
        self.sliced = False
        self.names |= {
            "FAULTS": FAULTS,
            "garbled": _garbled,
            "long_uvarint": primitives.long_uvarint,
            "read_tags": _read_tags,
            "read_uvarint": primitives.read_uvarint,
            "UUIDS": primitives.UUIDS,
        }

    def source(self, function: str) -> str:
        """Generates one of the functions."""
        self.sliced = function == "read_slices"
        self.lines.clear()
        self.counter = 0
        self.names["explain"] = trace.explain_bytes
        self.depth = 2
        message = self.struct(self.cls)
        self.flush()
        body = "\n".join(self.lines)
        if function == "decode":
            return (
                f"def decode(data):\n"
                f"    if type(data) is not bytes:\n"
                f"        data = bytes(memoryview(data))\n"
                f"    try:\n"
                f"        pos = 0\n"
                f"{body}\n"
                f"        if pos == len(data):\n"
                f"            return {message}\n"
                f"    except FAULTS as fault:\n"
                f"        raise explain(MESSAGE, VERSION, data, 0, True) from fault\n"
                f"    raise explain(MESSAGE, VERSION, data, 0, True)\n"
            )
        if self.sliced:
            return (
                f"def read_slices(data, pos):\n"
                f"    start = pos\n"
                f"    try:\n"
                f"{body}\n"
                f"        if pos <= len(data):\n"
                f"            return {message}, pos\n"
                f"    except FAULTS as fault:\n"
                f"        raise garbled(MESSAGE, VERSION, pos - start, fault) from fault\n"
                f"    raise garbled(MESSAGE, VERSION, pos - start, 'the bytes end before the message')\n"
                f"    yield 0\n"
            )
        return (
            f"def read(data, pos):\n"
            f"    if type(data) is not bytes:\n"
            f"        data = bytes(memoryview(data))\n"
            f"    start = pos\n"
            f"    if start < 0:\n"
            f"        raise IndexError('a message begins at 0 or later')\n"
            f"    try:\n"
            f"{body}\n"
            f"        if pos <= len(data):\n"
            f"            return {message}, pos\n"
            f"    except FAULTS as fault:\n"
            f"        raise explain(MESSAGE, VERSION, data, start, False) from fault\n"
            f"    raise explain(MESSAGE, VERSION, data, start, False)\n"
        )

    # Runs of fixed-size values

    def fixed(self, code: str, hint: str) -> str:
        """Adds a fixed-size value to the run, and returns its variable's name."""
        target = self.fresh(hint)
        self.run.append((code, target))
        return target

    def flush(self, *, stay: int = 0) -> None:
        """Reads the run: a single byte by index, anything else by one `struct` call.

        Afterwards `pos` is at the end of the run, or `stay` bytes before it.
        """
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        layout = struct.Struct(f">{codes}")
        if codes == "B":
            self.line(f"{targets} = data[pos]")
        else:
            unpack = self.global_(f"unpack_{codes.replace('?', 'o')}", layout.unpack_from)
            self.line(f"{targets}{',' if len(self.run) == 1 else ''} = {unpack}(data, pos)")
        if layout.size > stay:
            self.line(f"pos += {layout.size - stay}")
        self.run.clear()

    # Structs

    def struct(self, cls: type[Struct]) -> str:
        """Reads a struct's fields, and returns the expression that constructs it."""
        plain, tagged = fields_of(cls, self.version, self.flexible)
        values = {field.attr: self.value(field, field.type, field.nullable_in(self.version)) for field in plain}
        tags = "None"
        if self.flexible:
            tags = self.tags(values, tagged)
        for field in cls.__wire_fields__:
            if field.attr not in values:
                values[field.attr] = self.default(field)
        arguments = [*(values[field.attr] for field in cls.__wire_fields__), tags]
        return f"{self.class_(cls)}({', '.join(arguments)})"

    def default(self, field: Field) -> str:
        """Source of the field's default."""
        default = field.default
        if isinstance(default, list):
            return "[]"
        if isinstance(default, Struct):
            return f"{self.class_(type(default))}()"
        if default == NO_UUID:
            return self.global_("NO_UUID", NO_UUID)
        return repr(default)

    def tags(self, values: dict[str, str], tagged: dict[int, Field]) -> str:
        """Reads a struct's tagged fields into `values`, and returns the variable of the unknown ones."""
        count = self.fixed("B", "tags")
        self.flush()
        unknown = self.fresh("unknown")
        self.line(f"{unknown} = None")
        for field in tagged.values():
            target = values[field.attr] = self.fresh(field.attr)
            self.line(f"{target} = {self.default(field)}")
        self.line(f"if {count}:")
        if not tagged:
            self.line(f"    {unknown}, pos = read_tags(data, pos, {count})")
            return unknown
        self.depth += 1
        self.line(f"if {count} > 127:")
        self.line(f"    {count}, pos = long_uvarint(data, {count}, pos)")
        last, tag, size, end = (self.fresh(hint) for hint in ("last", "tag", "size", "end"))
        self.line(f"{last} = -1")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"{tag}, pos = read_uvarint(data, pos)")
        self.line(f"{size}, pos = read_uvarint(data, pos)")
        self.line(f"if {tag} <= {last}:")
        self.line("    raise ValueError('tags out of order')")
        self.line(f"{last} = {tag}")
        self.line(f"{end} = pos + {size}")
        for number, field in tagged.items():
            self.line(f"if {tag} == {number}:")
            self.depth += 1
            value = self.value(field, field.type, field.nullable_in(self.version))
            self.flush()
            self.line(f"{values[field.attr]} = {value}")
            self.line(f"if pos != {end}:")
            self.line("    raise ValueError('tagged field of another size')")
            self.line("continue")
            self.depth -= 1
        self.line(f"if {unknown} is None:")
        self.line(f"    {unknown} = {{}}")
        self.line(f"{unknown}[{tag}] = data[pos:{end}]")
        self.line(f"pos = {end}")
        self.depth -= 2
        return unknown

    # Fields

    def value(self, field: Field, kind: Any, nullable: bool) -> str:
        """Reads one field (or array element), and returns the expression of its value."""
        if isinstance(kind, StructType):
            return self.nullable_struct(field, kind) if nullable else self.struct(kind.cls)
        if isinstance(kind, Scalar) and kind.code:
            target = self.fixed(kind.code, field.attr)
            if kind.name == "uuid":
                return f"UUIDS[{target}]"
            return target
        return self.varying(field, kind, nullable)

    def nullable_struct(self, field: Field, kind: StructType) -> str:
        """Reads a nullable struct: a null marker, then the struct."""
        marker = self.fixed("b", "present")
        target = self.fresh(field.attr)
        self.flush()
        self.line(f"if {marker} == 1:")
        self.depth += 1
        value = self.struct(kind.cls)
        self.flush()
        self.line(f"{target} = {value}")
        self.depth -= 1
        self.line(f"elif {marker} == {field.null_marker(self.version)}:")
        self.line(f"    {target} = None")
        self.line("else:")
        self.line("    raise ValueError('neither null nor present')")
        return target

    def varying(self, field: Field, kind: Any, nullable: bool) -> str:
        """Reads a string, blob or array: its length with the run before it, then its content.

        A compact length is a varint of the length + 1, so that 0 is null. It is nearly always a single byte; `pos`
        stays on that byte, and `pos + length` is the end of a string.
        """
        compact = self.compact(field)
        short = isinstance(kind, Scalar) and kind.name == "string"
        length = self.fixed("B" if compact else "h" if short else "i", "length")
        target = self.fresh(field.attr)
        if compact:
            self.flush(stay=1)
            if nullable:
                self.line(f"if {length}:")
                self.depth += 1
                self.line(f"if {length} > 127:")
            else:
                self.line(f"if not 0 < {length} < 128:")
            self.line(f"    {length}, pos = long_uvarint(data, {length}, pos + 1)")
            if short:
                self.line(f"    if {length} > {primitives.MAX_STRING + 1}:")
                self.line("        raise ValueError('string too long')")
            self.line("    pos -= 1")
        else:
            self.flush()
            if nullable:
                self.line(f"if {length} != -1:")
                self.depth += 1
            self.line(f"if {length} < 0:")
            self.line("    raise ValueError('negative length')")
        self.content(kind, target, length, int(compact), field)
        if nullable:
            self.depth -= 1
            self.line("else:")
            self.line(f"    {target} = None")
            if compact:
                self.line("    pos += 1")
        return target

    def content(self, kind: Any, target: str, length: str, ahead: int, field: Field) -> None:
        """Reads `length - ahead` bytes or elements into `target`, from `ahead` bytes after `pos`."""
        start = "pos + 1" if ahead else "pos"
        count = f"{length} - 1" if ahead else length
        if isinstance(kind, Scalar):
            end = self.fresh("end")
            self.line(f"{end} = pos + {length}")
            if kind.name == "string":
                self.line(f"{target} = data[{start}:{end}].decode()")
            elif kind.name == "bytes":
                self.line(f"{target} = data[{start}:{end}]")
            else:
                self.line(f"{target} = memoryview(data)[{start}:{end}]")
            self.line(f"pos = {end}")
        elif isinstance(kind.element, Scalar) and kind.element.code and kind.element.name != "uuid":
            element = kind.element
            table = self.global_(f"unpack_many_{element.code}", primitives.unpackers(element.code))
            if self.sliced:
                self.line(f"yield {count}")
            self.line(f"{target} = {table}[{count}](data, {start})")
            product = length if element.size == 1 else f"{element.size} * {length}"
            self.line(f"pos += {product} - {element.size - 1}" if ahead and element.size > 1 else f"pos += {product}")
        else:
            if ahead:
                self.line("pos += 1")
            self.line(f"{target} = []")
            self.line(f"for _ in range({count}):")
            self.depth += 1
            value = self.value(field, kind.element, False)
            self.flush()
            self.line(f"{target}.append({value})")
            if self.sliced:
                self.line("yield 1")
            self.depth -= 1
            if isinstance(kind.element, Scalar):
                self.line(f"{target} = tuple({target})")


def _garbled(message: type[MessageStruct], version: int, pos: int, fault: object) -> ProtocolError:
    """The error of a large message. `trace` would interpret all of it, in one go."""
    return ProtocolError(message.__message__.name, version, "", pos, str(fault))


def _read_tags(data: bytes, pos: int, count: int) -> tuple[dict[int, bytes], int]:
    """So many tagged fields, all of them unknown, and the position after them; `count` is the first byte of that."""
    if count > 127:
        count, pos = primitives.long_uvarint(data, count, pos)
    fields: dict[int, bytes] = {}
    last = -1
    for _ in range(count):
        tag, pos = primitives.read_uvarint(data, pos)
        size, pos = primitives.read_uvarint(data, pos)
        if tag <= last:
            raise ValueError("tags out of order")
        last = tag
        fields[tag] = data[pos : pos + size]
        pos += size
    return fields, pos
