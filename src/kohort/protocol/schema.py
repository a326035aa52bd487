"""Declarations of messages.

A message is a class; its fields are declared once, as a superset over all versions, each with its wire type, a line of
documentation, and the versions that have it:

    class HeartbeatRequest(Request, key=12, versions="0-4", flexible=4):
        group_id: str = string("The group the member belongs to.")
        generation_id: int = int32("The generation the member joined in.")
        member_id: str = string("The member's id.")
        group_instance_id: str | None = string("A static member's own id.", since=3, nullable=True, default=None)

The annotation is the Python type, the call the wire type. Structs nest as on the wire:
`MetadataResponse.Topic.Partition`. Every field has a default.

Python types: numbers are `int` or `float`, ids `uuid.UUID`, blobs `bytes`, records a buffer (decoding returns a
`memoryview` into the input, without a copy). Arrays of structs are lists; arrays of numbers and strings are tuples.
Nullable fields may be `None`, and so may absent tagged structs.

This module declares; `message` adds messages, `codec` compiles, `trace` interprets.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast, dataclass_transform

import msgspec

__all__ = [
    "LATEST", "NEVER", "NO_UUID", "Array", "Field", "Records", "Scalar", "Struct", "StructType", "Type", "array",
    "boolean", "bytes_", "camel_case", "fields_of", "float64", "int8", "int16", "int32", "int64", "records_", "string",
    "struct", "uint16", "uint32", "uuid_", "walk_structs",
]  # fmt: skip

Records: TypeAlias = bytes | bytearray | memoryview
"""Encoded record batches; any object with the buffer protocol."""

NO_UUID: Final = uuid.UUID(int=0)
"""Kafka's "no id": sixteen zero bytes."""

LATEST: Final = 32767
"""The end of an open version range."""

NEVER: Final = LATEST + 1
"""The first version of a feature that no version has."""

_UNSET: Final = object()


class Type:
    """A wire type. Subclasses: `Scalar`, `Array`, `StructType`."""

    name: str
    """As Kafka spells it: "int32", "string", "[]Topic"."""


class Scalar(Type):
    """A scalar type. Calling it declares a field of the type.

    Attributes:
        code: format character of `struct` for fixed-size types, "" for others.
        size: bytes on the wire, or 0 if variable.
        zero: the default of fields without a declared one.
    """

    def __init__(self, name: str, zero: Any, code: str = "", size: int = 0) -> None:
        self.name = name
        self.zero = zero
        self.code = code
        self.size = size

    def __call__(self, doc: str, **options: Any) -> Any:
        """Declares a field; `options` are those of `Field`."""
        return Field(self, doc, **options)

    def __repr__(self) -> str:
        return self.name


class Array(Type):
    """An array; `element` is a `Scalar` or a `StructType`, never another array."""

    def __init__(self, element: Scalar | StructType) -> None:
        self.element = element
        self.name = f"[]{element.name}"

    def __repr__(self) -> str:
        return self.name


class StructType(Type):
    """A group of fields, declared as a subclass of `Struct`."""

    def __init__(self, cls: type[Struct]) -> None:
        self.cls = cls
        self.name = cls.__name__

    def __repr__(self) -> str:
        return self.name


boolean: Final = Scalar("bool", False, "?", 1)
int8: Final = Scalar("int8", 0, "b", 1)
int16: Final = Scalar("int16", 0, "h", 2)
uint16: Final = Scalar("uint16", 0, "H", 2)
int32: Final = Scalar("int32", 0, "i", 4)
uint32: Final = Scalar("uint32", 0, "I", 4)
int64: Final = Scalar("int64", 0, "q", 8)
float64: Final = Scalar("float64", 0.0, "d", 8)
uuid_: Final = Scalar("uuid", NO_UUID, "16s", 16)
string: Final = Scalar("string", "")
bytes_: Final = Scalar("bytes", b"")
records_: Final = Scalar("records", b"")


def array(element: Scalar | type[Struct], doc: str, **options: Any) -> Any:
    """Declares a field that is an array of scalars or structs; `options` are those of `Field`."""
    return Field(Array(element if isinstance(element, Scalar) else StructType(element)), doc, **options)


def struct(cls: type[Struct], doc: str, **options: Any) -> Any:
    """Declares a field that is one struct; `options` are those of `Field`."""
    return Field(StructType(cls), doc, **options)


class Field:
    """One field of a message or struct.

    Args:
        type_: its wire type.
        doc: what it means, in a line.
        since, until: first and last version that has it.
        nullable: whether it may be null in every version that has it.
        nullable_since: the first version where it may be null, if it existed before.
        default: its default, also its value in versions without it. Without a declared default: null if nullable,
            otherwise zero, empty, or a struct of defaults. An absent tagged struct is None.
        ignorable: whether a value other than the default may be dropped silently by a version without the field.
        tag, tagged_since: number of the tagged field, and the first version where it is tagged (default: `since`).
        compact: False if the field keeps the classic length prefix in flexible versions.
        name: Kafka's name, if it differs from the attribute's: of a field that later versions replace by another.
    """

    __slots__ = (
        "attr", "compact", "default", "doc", "ignorable", "name", "nullable_since", "since", "tag", "tagged_since",
        "type", "until",
    )  # fmt: skip

    def __init__(
        self, type_: Type, doc: str, *, since: int = 0, until: int = LATEST, nullable: bool = False,
        nullable_since: int | None = None, default: Any = _UNSET, ignorable: bool = False, tag: int | None = None,
        tagged_since: int | None = None, compact: bool = True, name: str = "",
    ) -> None:  # fmt: skip
        self.type = type_
        self.doc = doc
        self.since = since
        self.until = until
        self.nullable_since = since if nullable else NEVER if nullable_since is None else nullable_since
        self.ignorable = ignorable
        self.tag = tag
        self.tagged_since = NEVER if tag is None else since if tagged_since is None else tagged_since
        self.compact = compact
        self.attr = ""
        self.name = name
        self.default = self._own_default() if default is _UNSET else default
        if self.default and isinstance(self.default, (list, Struct)) and self.default != self._empty():
            raise TypeError(f"{doc}: a default list is empty, and a default struct has its own defaults")
        if self.optional and self.tagged_since > since:
            raise TypeError(f"{doc}: a struct that is tagged must be so since it exists, or be nullable")

    def _own_default(self) -> Any:
        return None if self.nullable_since < NEVER or self.optional else self._empty()

    def _empty(self) -> Any:
        """Zero, empty, or a struct of defaults."""
        if isinstance(self.type, StructType):
            return self.type.cls()
        if isinstance(self.type, Array):
            return () if isinstance(self.type.element, Scalar) else []
        assert isinstance(self.type, Scalar)
        return self.type.zero

    @property
    def optional(self) -> bool:
        """Whether None stands for "absent": in a tagged struct that can't be null on the wire."""
        return self.tag is not None and isinstance(self.type, StructType) and self.nullable_since == NEVER

    def bind(self, attr: str) -> None:
        """Sets the field's Python name."""
        self.attr = attr
        self.name = self.name or camel_case(attr)

    def in_version(self, version: int) -> bool:
        """Whether the version has the field, tagged or not."""
        return self.since <= version <= self.until

    def nullable_in(self, version: int) -> bool:
        """Whether the field may be null in the version."""
        return version >= self.nullable_since

    def tagged_in(self, version: int) -> bool:
        """Whether it is a tagged field in the version."""
        return version >= self.tagged_since

    def null_marker(self, version: int) -> int:
        """The byte of a null struct; 1 is that of a present one. Kafka has two: 0 in a tagged field, otherwise -1."""
        return 0 if self.tagged_in(version) else -1

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type}>"


def camel_case(attr: str) -> str:
    """Kafka's spelling of a Python name: "throttle_time_ms" → "ThrottleTimeMs"."""
    return "".join(part[:1].upper() + part[1:] for part in attr.rstrip("_").split("_"))


@dataclass_transform(kw_only_default=True)
class StructMeta(msgspec.StructMeta):
    """Makes a slotted msgspec class of the declared fields, and keeps their declarations in `__wire_fields__`."""

    __wire_fields__: tuple[Field, ...]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **options: Any
    ) -> StructMeta:  # fmt: skip
        for base in bases:
            if getattr(base, "__wire_fields__", ()):
                raise TypeError(f"{name}: {base.__name__} has fields, and a message or struct can't be extended")
        declared = {attr: value for attr, value in namespace.items() if isinstance(value, Field)}
        for attr, field in declared.items():
            field.bind(attr)
            if isinstance(field.default, list):
                namespace[attr] = msgspec.field(default_factory=list)
            elif isinstance(field.default, Struct):
                namespace[attr] = msgspec.field(default_factory=type(field.default))
            else:
                namespace[attr] = field.default
        if declared or options:
            # Not in the bases, so that it comes last, after the declared fields, in positional arguments.
            namespace.setdefault("__annotations__", {})["unknown_tags"] = "dict[int, bytes] | None"
            namespace["unknown_tags"] = None
        cls = super().__new__(mcls, name, bases, namespace, repr_omit_defaults=True, gc=False)
        cls.__wire_fields__ = tuple(declared.values())
        cast("type[Struct]", cls).__declare__(**options)
        return cls


class Struct(msgspec.Struct, metaclass=StructMeta):
    """The base of all structs and messages: slotted, comparable, and with a `repr` without defaults.

    Arguments are keywords. `unknown_tags` has undeclared tagged fields by tag, as raw bytes; they are encoded
    unchanged. Versions without tagged fields refuse them.
    """

    __wire_fields__: ClassVar[tuple[Field, ...]] = ()

    if TYPE_CHECKING:
        unknown_tags: dict[int, bytes] | None = None

    @classmethod
    def __declare__(cls, **options: Any) -> None:
        """Reads the options of the class statement; messages have some, structs none."""
        if options:
            raise TypeError(f"{cls.__name__}: a struct takes no options, {', '.join(options)} given")


@cache
def fields_of(cls: type[Struct], version: int, flexible: bool) -> tuple[tuple[Field, ...], dict[int, Field]]:
    """Returns a struct's fields in a version: the plain ones in order, and the tagged ones by ascending tag."""
    present = [field for field in cls.__wire_fields__ if field.in_version(version)]
    tagged = {field.tag: field for field in present if flexible and field.tagged_in(version) and field.tag is not None}
    plain = tuple(field for field in present if field.tag not in tagged)
    return plain, dict(sorted(tagged.items()))


def walk_structs(cls: type[Struct]) -> Iterator[type[Struct]]:
    """Yields `cls` and every nested struct, depth first, once each."""
    seen: set[type[Struct]] = set()

    def walk(struct: type[Struct]) -> Iterator[type[Struct]]:
        if struct in seen:
            return
        seen.add(struct)
        yield struct
        for field in struct.__wire_fields__:
            inner = field.type.element if isinstance(field.type, Array) else field.type
            if isinstance(inner, StructType):
                yield from walk(inner.cls)

    return walk(cls)
