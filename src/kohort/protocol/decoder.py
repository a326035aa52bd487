"""Writes the source of a decoder out of a declaration; `codec` says what such source looks like."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from kohort.protocol import primitives, trace
from kohort.protocol.emitter import Emitter
from kohort.protocol.schema import NO_UUID, Field, Scalar, Struct, StructType, fields_of

if TYPE_CHECKING:
    from kohort.protocol.message import Message

__all__ = ["Decoder"]

FAULTS = (struct.error, IndexError, ValueError, OverflowError)
"""What bad bytes make the straight path of a decoder run into; `trace` then explains it."""


class Decoder(Emitter):
    """Writes `decode` and `read`.

    Fixed-size values gather in a run (`self.run`: format characters and targets) until something of a varying size
    needs its content read; then the run is flushed as one unpacking.
    """

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(cls, version)
        self.run: list[tuple[str, str]] = []
        self.names |= {
            "FAULTS": FAULTS,
            "long_uvarint": primitives.long_uvarint,
            "read_tags": _read_tags,
            "read_uvarint": primitives.read_uvarint,
            "UUIDS": primitives.UUIDS,
        }

    def source(self, function: str) -> str:
        """Write `decode` or `read`."""
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

    # Runs of fixed-size values.

    def fixed(self, code: str, hint: str) -> str:
        """Add a value of a fixed size to the run, and return the name it will have."""
        target = self.fresh(hint)
        self.run.append((code, target))
        return target

    def flush(self, *, stay: int = 0) -> None:
        """Read the run: one byte by index, anything else by one `struct` call.

        Afterwards `pos` stands behind the run, or `stay` bytes before that.
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

    # Structs.

    def struct(self, cls: type[Struct]) -> str:
        """Read a struct's fields, and return the expression that makes it."""
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
        """Read a struct's tagged fields into `values`, and return the name of the unknown ones."""
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

    # Fields.

    def value(self, field: Field, kind: Any, nullable: bool) -> str:
        """Read one field (or array element), and return the expression of its value."""
        if isinstance(kind, StructType):
            return self.nullable_struct(field, kind) if nullable else self.struct(kind.cls)
        if isinstance(kind, Scalar) and kind.code:
            target = self.fixed(kind.code, field.attr)
            if kind.name == "uuid":
                return f"UUIDS[{target}]"
            return target
        return self.varying(field, kind, nullable)

    def nullable_struct(self, field: Field, kind: StructType) -> str:
        """Read a struct that a byte before it may declare null."""
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
        """Read a string, blob or array: its length with the run before it, then its content.

        A compact length is a varint, one more than the length, so that 0 is null. Nearly always it is a single byte;
        `pos` stays on that byte, and then `pos + length` is where a string ends.
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
        """Read what a length announces into `target`: `length - ahead` bytes or elements, `ahead` bytes after `pos`."""
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
            self.depth -= 1
            if isinstance(kind.element, Scalar):
                self.line(f"{target} = tuple({target})")


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
