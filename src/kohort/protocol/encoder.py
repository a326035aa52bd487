"""Generates the source of an encoder from a declaration; `codec` describes the source."""

from __future__ import annotations

import struct
from typing import Any

from kohort.protocol import primitives, trace
from kohort.protocol.emitter import Emitter
from kohort.protocol.message_spec import MessageStruct
from kohort.protocol.schema import (
    NO_UUID,
    Array,
    Field,
    Scalar,
    Struct,
    StructType,
    fields_of,
    records_,
    walk_structs,
)

__all__ = ["Encoder"]

FAULTS = (struct.error, IndexError, ValueError, OverflowError, TypeError, AttributeError, KeyError)
"""Exceptions of an encoder on values of the wrong type."""

_PARTS = 1000
"""Parts of the output that are joined at a time by a generator."""


class Encoder(Emitter):
    """Generates `encode` and `encode_slices`.

    The output is a list of byte strings, joined at the end (or returned as a list, to send records without copying
    them). Between two loops it grows by one tuple (`self.parts`), whose fixed-size members are collected in a run
    (`self.run`) that one `struct` call packs.
    """

    def __init__(self, cls: type[MessageStruct], version: int) -> None:
        super().__init__(cls, version)
        self.run: list[tuple[str, str]] = []
        self.parts: list[str] = []
        self.sliced = False
        self.joined_early = False
        self.names |= {
            "FAULTS": FAULTS,
            "BOOLEANS": primitives.BOOLEANS,
            "LENGTHS": primitives.LENGTHS,
            "STRING_LENGTHS": primitives.STRING_LENGTHS,
            "absent": _absent,
            "as_bytes": primitives.as_bytes,
            "check_array": primitives.check_array,
            "write_tags": primitives.write_tags,
        }

    def source(self, function: str) -> str:
        """Generates one of the functions."""
        self.sliced = function == "encode_slices"
        # A list of a million parts would take long to join and to free. Records aren't to be copied.
        self.joined_early = self.sliced and not self.has_records()
        self.lines.clear()
        self.counter = 0
        self.names["explain"] = trace.explain_value
        self.depth = 2
        self.struct(self.cls, "message")
        self.flush()
        body = "\n".join(self.lines)
        return (
            f'def {function}(message, join=b"".join):\n'
            f"    try:\n"
            f"        out = []\n" + ("        done = 0\n" if self.joined_early else "") + f"{body}\n"
            f"        return join(out)\n"
            f"    except FAULTS as fault:\n"
            f"        raise explain(MESSAGE, VERSION, message) from fault\n" + ("    yield\n" if self.sliced else "")
        )

    def has_records(self) -> bool:
        """Whether a field of the message holds records."""
        fields = (field for cls in walk_structs(self.cls) for field in cls.__wire_fields__)
        return any(field.type is records_ for field in fields)

    # Parts of the output

    def fixed(self, code: str, expression: str) -> None:
        """Adds a fixed-size value."""
        self.run.append((code, expression))

    def part(self, expression: str) -> None:
        """Adds an expression of bytes."""
        self.pack_run()
        self.parts.append(expression)

    def pack_run(self) -> None:
        """Turns the run into one part."""
        if self.run:
            codes = "".join(code for code, _ in self.run)
            pack = self.global_(f"pack_{codes.replace('?', 'o')}", struct.Struct(f">{codes}").pack)
            self.parts.append(f"{pack}({', '.join(value for _, value in self.run)})")
            self.run.clear()

    def flush(self) -> None:
        """Writes the collected parts; called before branches and loops."""
        self.pack_run()
        if len(self.parts) == 1:
            self.line(f"out.append({self.parts[0]})")
        elif self.parts:
            self.line(f"out += ({', '.join(self.parts)})")
        self.parts.clear()

    # Structs

    def struct(self, cls: type[Struct], source: str) -> None:
        """Writes the struct of the expression `source`."""
        plain, tagged = fields_of(cls, self.version, self.flexible)
        for field in cls.__wire_fields__:
            if not field.in_version(self.version) and not field.ignorable:
                self.line(f"if {self.differs(field, f'{source}.{field.attr}')}:")
                self.line(f"    absent({field.name!r})")
        for field in plain:
            self.value(field, field.type, f"{source}.{field.attr}", field.nullable_in(self.version))
        if self.flexible:
            self.tags(source, tagged)
        else:
            self.line(f"if {source}.unknown_tags:")
            self.line("    absent('unknown_tags')")

    def differs(self, field: Field, expression: str) -> str:
        """Returns the condition that the field differs from its default."""
        default = field.default
        if default is None:
            return f"{expression} is not None"
        if isinstance(default, (list, tuple)):
            return f"{expression} is None or len({expression})"
        if isinstance(default, Struct):
            return f"{expression} != {self.class_(type(default))}()"
        if default == NO_UUID:
            return f"{expression} != {self.global_('NO_UUID', NO_UUID)}"
        return f"{expression} != {default!r}"

    def tags(self, source: str, tagged: dict[int, Field]) -> None:
        """Writes a struct's tagged fields, known and unknown, by tag."""
        unknown = self.fresh("unknown")
        self.line(f"{unknown} = {source}.unknown_tags")
        if not tagged:
            self.part(f'b"\\0" if {unknown} is None else write_tags({unknown})')
            return
        self.flush()
        tags, outer = self.fresh("tags"), self.fresh("outer")
        self.line(f"{tags} = {{}} if {unknown} is None else dict({unknown})")
        known = self.global_(f"TAGS_{'_'.join(map(str, tagged))}", frozenset(tagged))
        self.line(f"if {tags} and not {known}.isdisjoint({tags}):")
        self.line("    raise ValueError('unknown_tags has a known tag')")
        for number, field in tagged.items():
            expression = f"{source}.{field.attr}"
            self.line(f"if {self.differs(field, expression)}:")
            self.depth += 1
            self.line(f"{outer} = out")
            self.line("out = []")
            if self.joined_early:
                self.line(f"{outer}_done = done")
                self.line("done = 0")
            self.value(field, field.type, expression, field.nullable_in(self.version))
            self.flush()
            self.line(f'{tags}[{number}] = b"".join(out)')
            self.line(f"out = {outer}")
            if self.joined_early:
                self.line(f"done = {outer}_done")
            self.depth -= 1
        self.part(f'write_tags({tags}) if {tags} else b"\\0"')

    # Fields

    def value(self, field: Field, kind: Any, source: str, nullable: bool) -> None:
        """Writes one field (or array element) of the expression `source`."""
        if isinstance(kind, StructType):
            self.nested(field, kind, source, nullable)
        elif isinstance(kind, Array):
            self.array(field, kind, source, nullable)
        elif kind.name == "uuid":
            self.fixed("16s", f"{source}.int.to_bytes(16, 'big')")
        elif kind.name == "bool":
            self.fixed("B", f"BOOLEANS[{source}]")
        elif kind.code:
            self.fixed(kind.code, source)
        else:
            self.blob(field, kind, source, nullable)

    def nested(self, field: Field, kind: StructType, source: str, nullable: bool) -> None:
        """Writes a nested struct, or null."""
        name = self.fresh(field.attr)
        self.line(f"{name} = {source}")
        if not nullable:
            self.struct(kind.cls, name)
            return
        self.flush()
        self.line(f"if {name} is None:")
        null = field.null_marker(self.version).to_bytes(1, "big", signed=True)
        self.line(f"    out.append({null!r})")
        self.line("else:")
        self.depth += 1
        self.fixed("b", "1")
        self.struct(kind.cls, name)
        self.flush()
        self.depth -= 1

    def blob(self, field: Field, kind: Scalar, source: str, nullable: bool) -> None:
        """Writes a string, bytes or records."""
        compact = self.compact(field)
        raw = self.fresh(field.attr)
        text = kind.name == "string"
        code = "h" if text else "i"
        table = "STRING_LENGTHS" if text else "LENGTHS"
        if not nullable:
            self.line(f"{raw} = {source}")
            self.as_bytes(raw, text)
            if compact:
                self.part(f"{table}[len({raw}) + 1]")
            else:
                self.fixed(code, f"len({raw})")
        else:
            head = self.fresh("head")
            pack = self.global_(f"pack_{code}", struct.Struct(f">{code}").pack)
            self.line(f"{raw} = {source}")
            self.line(f"if {raw} is None:")
            self.line(f"    {head} = " + (r'b"\0"' if compact else f"{pack}(-1)"))
            self.line(f'    {raw} = b""')
            self.line("else:")
            self.depth += 1
            self.as_bytes(raw, text)
            self.line(f"{head} = " + (f"{table}[len({raw}) + 1]" if compact else f"{pack}(len({raw}))"))
            self.depth -= 1
            self.part(head)
        self.part(raw)

    def as_bytes(self, raw: str, text: bool) -> None:
        """Converts the variable `raw` to bytes."""
        if text:
            self.line(f"{raw} = {raw}.encode()")
        else:
            self.line(f"if type({raw}) is not bytes:")
            self.line(f"    {raw} = as_bytes({raw})")

    def array(self, field: Field, kind: Array, source: str, nullable: bool) -> None:
        """Writes an array, or null."""
        compact = self.compact(field)
        items = self.fresh(field.attr)
        self.line(f"{items} = {source}")
        if nullable:
            self.flush()
            null = r'b"\0"' if compact else r'b"\xff\xff\xff\xff"'
            self.line(f"if {items} is None:")
            self.line(f"    out.append({null})")
            self.line("else:")
            self.depth += 1
        self.line(f"if type({items}) is not list and type({items}) is not tuple:")
        self.line(f"    check_array({items})")
        if compact:
            self.part(f"LENGTHS[len({items}) + 1]")
        else:
            self.fixed("i", f"len({items})")
        element = kind.element
        if isinstance(element, Scalar) and element.code and element.name != "uuid":
            table = self.global_(f"pack_many_{element.code}", primitives.packers(element.code))
            self.part(f"{table}[len({items})](*{items})")
        else:
            self.flush()
            item = self.fresh("item")
            self.line(f"for {item} in {items}:")
            self.depth += 1
            mark = len(self.lines)
            self.value(field, element, item, False)
            self.flush()
            if self.sliced:
                if self.joined_early:
                    self.line(f"if len(out) - done > {_PARTS}:")
                    self.line('    out[done:] = (b"".join(out[done:]),)')
                    self.line("    done += 1")
                self.line("yield")
            elif len(self.lines) == mark:
                self.line("pass")
            self.depth -= 1
        if nullable:
            self.flush()
            self.depth -= 1


def _absent(name: str) -> None:
    raise ValueError(f"{name} is set, but the version has no such field")
