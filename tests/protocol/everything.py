"""All messages and versions, and random instances of them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from typing import Any

from kohort.protocol.catalogue import all_messages
from kohort.protocol.message import Message
from kohort.protocol.schema import Array, Field, Scalar, Struct, StructType, Type

MESSAGES: list[type[Message]] = list(all_messages().values())
OURS = {"StreamsSubscription", "StreamsAssignment"}  # Kohort's own: Kafka has no such messages


def message_versions() -> Iterator[tuple[type[Message], int]]:
    for message in MESSAGES:
        for version in message.__message__.versions:
            yield message, version


def label(value: object) -> str:
    """Test ids: names for messages, numbers for versions."""
    return value.__name__ if isinstance(value, type) else str(value)


INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
LETTERS = "abcdefgh.-_ÅßЖ漢🙂"


class RandomMessages:
    """Draws messages from a seeded generator; sometimes with unknown tagged fields."""

    def __init__(self, seed: int | str, *, unknown_tags: bool = False) -> None:
        self.random = random.Random(seed)
        self.unknown_tags = unknown_tags

    def message(self, cls: type[Message], version: int) -> Any:
        return self.struct(cls, cls, version)

    def struct(self, cls: type[Struct], message: type[Message], version: int) -> Any:
        values = {
            field.attr: self.field(field, message, version)
            for field in cls.__wire_fields__
            if field.in_version(version) and (field.tag is None or self.random.random() < 0.6)
        }
        if self.unknown_tags and message.__message__.flexible_in(version) and self.random.random() < 0.3:
            values["unknown_tags"] = {
                self.random.randrange(100, 2**32): self.random.randbytes(self.random.randrange(200)) for _ in range(2)
            }
        return cls(**values)

    def field(self, field: Field, message: type[Message], version: int) -> Any:
        if field.nullable_in(version) and self.random.random() < 0.3:
            return None
        return self.value(field.type, message, version)

    def value(self, kind: Type, message: type[Message], version: int) -> Any:
        if isinstance(kind, StructType):
            return self.struct(kind.cls, message, version)
        if isinstance(kind, Array):
            items = [self.value(kind.element, message, version) for _ in range(self.length())]
            return tuple(items) if isinstance(kind.element, Scalar) else items
        assert isinstance(kind, Scalar)
        return self.scalar(kind)

    def length(self) -> int:
        return self.random.choice((0, 1, 1, 2, 3))

    def scalar(self, kind: Scalar) -> Any:
        draw = self.random
        if kind.name in INTEGERS:
            bits = INTEGERS[kind.name]
            low = 0 if kind.name.startswith("u") else -(1 << bits - 1)
            high = (1 << bits) + low - 1
            return draw.choice((low, high, 0, 1, draw.randint(low, high), min(high, draw.randrange(100))))
        if kind.name == "bool":
            return draw.random() < 0.5
        if kind.name == "float64":
            return draw.choice((0.0, -1.5, draw.random(), float("inf")))
        if kind.name == "uuid":
            return uuid.UUID(int=draw.choice((0, 1, draw.getrandbits(128))))
        size = draw.choice((0, 1, 5, 20, 20, 126, 127, 128, 300))
        return "".join(draw.choices(LETTERS, k=size)) if kind.name == "string" else draw.randbytes(size)
