"""Schemas of Protocol Buffers, as text: the messages, fields and enums that are in them.

protoc isn't needed for it. What says nothing about bytes on the wire (options, services, ranges that are reserved) is
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from kohort.schema_registry.value_error import ValueFault
from kohort.schema_registry.well_known import WELL_KNOWN

__all__ = ["ProtobufEnum", "ProtobufField", "ProtobufMessage", "ProtobufSchema"]

_MOST_TEXT: Final = 1 << 20
_MOST_DEPTH: Final = 60
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<word>[\w.+-]+)|(?P<sign>.)""",
    re.DOTALL,
)

_SIZES: Final = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
SCALARS: Final = frozenset({"bool", "string", "bytes", "double", "float", *_SIZES})


@dataclass(frozen=True, slots=True)
class ProtobufField:
    """A field.

    Attributes:
        name, number: as the schema has them.
        type: a scalar's name, or that of a message or enum, as it is written.
        repeated: whether there may be many.
        key: of a map, the type of its keys, and `type` is that of the values; "" if it is none.
        scope: the full name of the message that it is in, where names are looked up.
        group: whether it is written as a group, between two tags.
    """

    name: str
    number: int
    type: str
    repeated: bool
    key: str
    scope: str
    group: bool = False


@dataclass(slots=True)
class ProtobufMessage:
    """A message: its full name, its fields by number, and the messages within, in their order."""

    name: str
    fields: dict[int, ProtobufField] = field(default_factory=dict)
    messages: list[ProtobufMessage] = field(default_factory=list)


@dataclass(slots=True)
class ProtobufEnum:
    """An enum: its full name, and its values' names by number."""

    name: str
    values: dict[int, str] = field(default_factory=dict)


class ProtobufSchema:
    """A schema.

    Args:
        text: of a .proto file.
        references: the files that it imports: (name, text). Google's well-known types are there anyway.

    Raises:
        ValueFault: it can't be read as one.
    """

    def __init__(self, text: str, references: Sequence[tuple[str, str]] = ()) -> None:
        self._named: dict[str, ProtobufMessage | ProtobufEnum] = {}
        _Parser(WELL_KNOWN, self._named).file()
        for _, each in references:
            _Parser(each, self._named).file()
        self._messages = _Parser(text, self._named).file()

    def message(self, indexes: Sequence[int]) -> ProtobufMessage:
        """The message by its place among those of the file, and of the message around it.

        Raises:
            ValueFault: there is none at that place.
        """
        messages, found = self._messages, None
        for index in indexes:
            if not 0 <= index < len(messages):
                raise ValueFault(f"the schema has no message {'.'.join(map(str, indexes))}")
            found = messages[index]
            messages = found.messages
        if found is None:
            raise ValueFault("no message is named")
        return found

    def find(self, name: str, scope: str) -> ProtobufMessage | ProtobufEnum | None:
        """What a name means within a message, from the inside out; None for what isn't there."""
        if name.startswith("."):
            return self._named.get(name[1:])
        while True:
            if (found := self._named.get(f"{scope}.{name}" if scope else name)) is not None or not scope:
                return found
            scope = scope.rpartition(".")[0]


class _Parser:
    """Reads a file, token by token."""

    def __init__(self, text: str, named: dict[str, ProtobufMessage | ProtobufEnum]) -> None:
        if len(text) > _MOST_TEXT:
            raise ValueFault(f"the schema has more than {_MOST_TEXT:,} characters")
        self._tokens = [*_tokens(text)]
        self._at = 0
        self._named = named

    def file(self) -> list[ProtobufMessage]:
        package = ""
        messages: list[ProtobufMessage] = []
        while self._at < len(self._tokens):
            match self._next():
                case "package":
                    package = self._next()
                    self._want(";")
                case "message":
                    messages.append(self._message(self._next(), package, 0))
                case "enum":
                    self._enum(package)
                case ";":  # an empty statement, as after a block
                    continue
                case _:
                    self._skip_statement()
        return messages

    def _message(self, name: str, scope: str, depth: int) -> ProtobufMessage:
        if depth > _MOST_DEPTH:
            raise ValueFault("the schema is nested too deeply")
        message = ProtobufMessage(f"{scope}.{name}" if scope else name)
        self._named[message.name] = message
        self._want("{")
        while (token := self._next()) != "}":
            match token:
                case "message":
                    message.messages.append(self._message(self._next(), message.name, depth + 1))
                case "enum":
                    self._enum(message.name)
                case "oneof":
                    self._next()
                    self._want("{")
                    while (inner := self._next()) != "}":
                        self._member(message, inner, depth)
                case "extend":  # its fields are another message's
                    self._skip_statement()
                case _:
                    self._member(message, token, depth)
        if len({each.name for each in message.fields.values()}) < len(message.fields):
            raise ValueFault(f"the schema has two fields of one name in message {message.name[:200]}")
        return message

    def _member(self, message: ProtobufMessage, token: str, depth: int) -> None:
        """A field; or what is none, which is passed over."""
        if token in ("option", "reserved", "extensions") and self._peek() != "=":
            self._skip_statement()
            return
        if token == ";":
            return
        repeated = token == "repeated"
        if token in ("repeated", "optional", "required"):
            token = self._next()
        key = ""
        if token == "map" and self._peek() == "<":
            self._want("<")
            key = self._next()
            self._want(",")
            token = self._next()
            self._want(">")
            repeated = True
        name = self._next()
        self._want("=")
        number = self._number()
        group = token == "group" and not key
        if group:
            message.messages.append(self._message(name, message.name, depth + 1))
            token, name = name, name.lower()
        else:
            self._skip_statement()
        if number in message.fields:
            raise ValueFault(f"the schema has two fields of number {number} in message {message.name[:200]}")
        message.fields[number] = ProtobufField(name, number, token, repeated, key, message.name, group)

    def _enum(self, scope: str) -> None:
        name = self._next()
        found = ProtobufEnum(f"{scope}.{name}" if scope else name)
        self._named[found.name] = found
        self._want("{")
        while (token := self._next()) != "}":
            if token == ";":
                continue
            if token in ("option", "reserved"):
                self._skip_statement()
                continue
            self._want("=")
            found.values.setdefault(self._number(), token)
            self._skip_statement()

    def _skip_statement(self) -> None:
        """Goes past the end of a statement: a semicolon, or a block in braces."""
        depth = 0
        while True:
            token = self._next()
            if token in "{[":
                depth += 1
            elif token in "}]":
                depth -= 1
                if depth < 0:
                    raise ValueFault(f"the schema has a {token} too many")
                if not depth and token == "}" and self._peek() != ";":
                    return
            elif token == ";" and not depth:
                return

    def _number(self) -> int:
        token = self._next()
        sign, digits = (-1, token[1:]) if token.startswith("-") else (1, token)
        if digits == "" and sign < 0:
            digits = self._next()
        try:
            return sign * int(digits, 8 if re.fullmatch("0[0-7]+", digits) else 0)
        except ValueError:
            raise ValueFault(f"the schema has {token[:40]!r} where a number is wanted") from None

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise ValueFault("the schema ends in the midst of a statement")
        self._at += 1
        return self._tokens[self._at - 1]

    def _want(self, token: str) -> None:
        found = self._next()
        if found != token:
            raise ValueFault(f"the schema has {found[:40]!r} where {token!r} is wanted")


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "space":
            yield match[0]
