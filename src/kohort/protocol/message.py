"""Messages: requests, responses, headers, and data inside other messages or in a log.

A message is a struct with a name, versions, an API key, `encode` and `decode`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

from kohort.protocol.codec import CodecTable
from kohort.protocol.message_spec import Kind, MessageSpec, MessageStruct
from kohort.protocol.primitives import Buffer
from kohort.protocol.schema import NEVER

__all__ = ["Data", "Header", "Kind", "Message", "MessageSpec", "Request", "Response"]


class Message(MessageStruct):
    """The base of all messages; `__message__` is the `MessageSpec`."""

    __kind__: ClassVar[Kind] = Kind.DATA

    __codecs__: ClassVar[CodecTable]

    @classmethod
    def __declare__(cls, *, versions: str | None = None, key: int = -1, flexible: int = NEVER, **options: Any) -> None:
        """Reads the options of the class statement.

        Args:
            versions: the versions, as "0-4" or "0"; None for an abstract base.
            key: API key or record type.
            flexible: the first version with compact lengths and tagged fields.
            options: there are no others.
        """
        super().__declare__(**options)
        if versions is None:
            return
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", versions)
        if match is None:
            raise TypeError(f"{cls.__name__}: versions={versions!r} should look like '0-4' or '0'")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise TypeError(f"{cls.__name__}: versions={versions!r} end before they begin")
        cls.__message__ = MessageSpec(cls.__name__, cls.__kind__, key, range(first, last + 1), flexible)
        cls.__codecs__ = CodecTable(cls)

    def encode(self, version: int) -> bytes:
        """Encodes the message in a version.

        Raises:
            UnsupportedVersionError: no such version, or a field is set that the version doesn't have.
            ProtocolError: a value doesn't fit its field.
        """
        return self.__codecs__[version].encode(self)  # type: ignore[no-any-return]

    @classmethod
    def decode(cls, data: Buffer, version: int) -> Self:
        """Decodes a message; `data` must end with it.

        Raises:
            UnsupportedVersionError: no such version.
            ProtocolError: the bytes aren't a valid message; names field and byte.
        """
        return cls.__codecs__[version].decode(data)  # type: ignore[no-any-return]

    @classmethod
    def read(cls, data: Buffer, pos: int, version: int) -> tuple[Self, int]:
        """Decodes the message at `pos`, and returns the position after it; more may follow, as after a header.

        Raises:
            UnsupportedVersionError: no such version.
            ProtocolError: the bytes aren't a valid message; its offset counts from `pos`.
        """
        return cls.__codecs__[version].read(data, pos)


class Request(Message):
    """A request."""

    __kind__: ClassVar[Kind] = Kind.REQUEST


class Response(Message):
    """A response."""

    __kind__: ClassVar[Kind] = Kind.RESPONSE


class Header(Message):
    """The header of a request or a response."""

    __kind__: ClassVar[Kind] = Kind.HEADER


class Data(Message):
    """Data inside other messages or in a log: embedded protocols, coordinator and control records."""
