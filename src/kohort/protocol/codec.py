"""Compiles (message, version) into a function that encodes and one that decodes.

A declaration is turned into Python source once, on first use, and run from then on. What the source looks like:

- Nested structs are written out in place: there are loops over arrays, but no calls from struct to struct, and no
  look at the declaration at run time.
- Consecutive fields of a fixed size are one `struct` call, and the length that opens the next field of a varying
  size is read by the same call.
- Good input takes the straight path. Anything else ends in one of a few plain exceptions; only then `trace`
  interprets the declaration step by step to say which field, at which byte, is wrong.

A slice past the end of the input comes out short without an error, so the straight path checks once, at the end,
that it stopped where the input does. Until then every array element costs at least one byte that must be there,
so no count, however absurd, makes the loop longer than the input.

`source_of` shows the code that was made.
"""

from __future__ import annotations

import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kohort.protocol import primitives
from kohort.protocol.schema import NO_UUID, Array, Field, Scalar, Struct, StructType, fields_of

if TYPE_CHECKING:
    from kohort.protocol.message import Message

__all__ = ["Codec", "CodecTable", "source_of"]

M = TypeVar("M", bound="Message")

DECODE_FAULTS = (struct.error, IndexError, ValueError, OverflowError)
"""What bad bytes make the straight path of a decoder run into; `trace` then explains it."""

ENCODE_FAULTS = (*DECODE_FAULTS, TypeError, AttributeError, KeyError)
"""What values of a wrong kind make an encoder run into."""


class Codec(Generic[M]):
    """Encoder and decoder of one message in one version.

    Attributes:
        encode: `encode(message) -> bytes`.
        decode: `decode(data) -> message`, where `data` holds the message and nothing else.
        read: `read(data, pos) -> (message, end)`, where more may follow, such as a body after its header.
    """

    __slots__ = ("decode", "encode", "read")

    def __init__(self, cls: type[M], version: int) -> None:
        cls.__message__.check_version(version)
        encoder, decoder = _Encoder(cls, version).compile(), _Decoder(cls, version).compile()
        self.encode: Callable[[M], bytes] = encoder["encode"]
        self.decode: Callable[[bytes | bytearray | memoryview], M] = decoder["decode"]
        self.read: Callable[[bytes | bytearray | memoryview, int], tuple[M, int]] = decoder["read"]


class CodecTable(dict[int, Codec[Any]]):
    """The codecs of one message by version, each compiled when it is first asked for."""

    def __init__(self, cls: type[Message]) -> None:
        super().__init__()
        self.cls = cls

    def __missing__(self, version: int) -> Codec[Any]:
        made = self[version] = Codec(self.cls, version)
        return made


def source_of(cls: type[Message], version: int) -> str:
    """The Python source that the compiler makes for a message in a version, for reading."""
    encoder, decoder = _Encoder(cls, version), _Decoder(cls, version)
    return f"{encoder.source()}\n\n{decoder.source()}"


class _Emitter(ABC):
    """Source under construction: indented lines, fresh names, and the objects that the source refers to."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = cls.__message__.flexible_in(version)
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = {"MESSAGE": cls, "VERSION": version}
        self.counter = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def fresh(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}_{self.counter}"

    def global_(self, name: str, value: Any) -> str:
        """Make `value` known to the source as `name`."""
        self.names.setdefault(name, value)
        return name

    def class_(self, cls: type[Struct]) -> str:
        name = re.sub(r"\W", "_", cls.__qualname__)
        while self.names.setdefault(name, cls) is not cls:
            name += "_"
        return name

    def compact(self, field: Field) -> bool:
        return self.flexible and field.compact

    def compile(self) -> dict[str, Any]:
        """The functions that the source defines, by name."""
        spec = self.cls.__message__
        code = compile(self.source(), f"<codec of {spec.name} v{self.version}>", "exec")
        scope = dict(self.names)
        exec(code, scope)
        return scope

    @abstractmethod
    def source(self) -> str:
        """Write the source of the functions."""


class _Decoder(_Emitter):
    """Writes `decode` and `read`.

    Fixed-size values gather in a run (`self.run`: format characters and targets) until something of a varying size
    needs its content read; then the run is flushed as one unpacking.
    """

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(cls, version)
        self.run: list[tuple[str, str]] = []
        self.names |= {
            "FAULTS": DECODE_FAULTS,
            "long_uvarint": primitives.long_uvarint,
            "read_uvarint": primitives.read_uvarint,
            "UUIDS": primitives.UUIDS,
        }

    def source(self) -> str:
        from kohort.protocol import trace

        self.lines.clear()
        self.counter = 0
        self.names["explain"] = trace.explain_bytes
        self.depth = 2
        message = self.struct(self.cls)
        self.flush()
        body = "\n".join(self.lines)
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
            f"\n\n"
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


class _Encoder(_Emitter):
    """Writes `encode`.

    The output is a list of byte strings, joined at the end. Between two loops it grows by one tuple
    (`self.parts`), whose fixed-size members gather in a run (`self.run`) that one `struct` call packs.
    """

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(cls, version)
        self.run: list[tuple[str, str]] = []
        self.parts: list[str] = []
        self.names |= {
            "FAULTS": ENCODE_FAULTS,
            "BOOLEANS": primitives.BOOLEANS,
            "LENGTHS": primitives.LENGTHS,
            "STRING_LENGTHS": primitives.STRING_LENGTHS,
            "absent": _absent,
            "as_bytes": primitives.as_bytes,
            "check_array": primitives.check_array,
            "write_tags": primitives.write_tags,
        }

    def source(self) -> str:
        from kohort.protocol import trace

        self.lines.clear()
        self.counter = 0
        self.names["explain"] = trace.explain_value
        self.depth = 2
        self.struct(self.cls, "message")
        self.flush()
        body = "\n".join(self.lines)
        return (
            f"def encode(message):\n"
            f"    try:\n"
            f"        out = []\n"
            f"{body}\n"
            f'        return b"".join(out)\n'
            f"    except FAULTS as fault:\n"
            f"        raise explain(MESSAGE, VERSION, message) from fault\n"
        )

    # Parts of the output.

    def fixed(self, code: str, expression: str) -> None:
        """Add a value of a fixed size."""
        self.run.append((code, expression))

    def part(self, expression: str) -> None:
        """Add an expression that gives bytes."""
        self.pack_run()
        self.parts.append(expression)

    def pack_run(self) -> None:
        if self.run:
            codes = "".join(code for code, _ in self.run)
            pack = self.global_(f"pack_{codes.replace('?', 'o')}", struct.Struct(f">{codes}").pack)
            self.parts.append(f"{pack}({', '.join(value for _, value in self.run)})")
            self.run.clear()

    def flush(self) -> None:
        """Write what has gathered; called before anything that branches or loops."""
        self.pack_run()
        if len(self.parts) == 1:
            self.line(f"out.append({self.parts[0]})")
        elif self.parts:
            self.line(f"out += ({', '.join(self.parts)})")
        self.parts.clear()

    # Structs.

    def struct(self, cls: type[Struct], source: str) -> None:
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
        """Source of "the field has another value than its default"."""
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
            self.value(field, field.type, expression, field.nullable_in(self.version))
            self.flush()
            self.line(f'{tags}[{number}] = b"".join(out)')
            self.line(f"out = {outer}")
            self.depth -= 1
        self.part(f'write_tags({tags}) if {tags} else b"\\0"')

    # Fields.

    def value(self, field: Field, kind: Any, source: str, nullable: bool) -> None:
        """Write one field, or one array element, that the expression `source` gives."""
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
        """Write a string, bytes or records."""
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
        """Make bytes of what the variable `raw` holds."""
        if text:
            self.line(f"{raw} = {raw}.encode()")
        else:
            self.line(f"if type({raw}) is not bytes:")
            self.line(f"    {raw} = as_bytes({raw})")

    def array(self, field: Field, kind: Array, source: str, nullable: bool) -> None:
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
            if len(self.lines) == mark:
                self.line("pass")
            self.depth -= 1
        if nullable:
            self.flush()
            self.depth -= 1


def _absent(name: str) -> None:
    raise ValueError(f"{name} is set, but the version has no such field")
