"""Messages: requests, responses, headers, and data inside other messages or in a log.

A message is a struct with a name, versions, an API key, `encode` and `decode`.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from kohort.protocol.codec import CodecTable
from kohort.protocol.errors import UnsupportedVersionError
from kohort.protocol.primitives import Buffer
from kohort.protocol.schema import NEVER, Struct

__all__ = ["Data", "Header", "Kind", "Message", "MessageSpec", "Request", "Response"]


_API_VERSIONS: Final = 18


class Kind(enum.Enum):
    """The kinds of messages."""

    REQUEST = "request"
    RESPONSE = "response"
    HEADER = "header"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A message's declaration, without its fields.

    Attributes:
        name: Kafka's name, such as "HeartbeatRequest".
        kind: request, response, header or data.
        key: the API's key, or a coordinator record's type; -1 for neither.
        versions: the versions that can be encoded and decoded.
        flexible_since: first version with compact lengths and tagged fields (KIP-482); `NEVER` if none.
    """

    name: str
    kind: Kind
    key: int
    versions: range
    flexible_since: int

    def flexible_in(self, version: int) -> bool:
        """Returns whether the version has compact lengths and tagged fields."""
        return version >= self.flexible_since

    def check_version(self, version: int) -> None:
        """Raises `UnsupportedVersionError` for an undeclared version."""
        if version not in self.versions:
            known = f"{self.versions[0]} to {self.versions[-1]}"
            raise UnsupportedVersionError(self.name, version, "", None, f"no such version; Kohort speaks {known}")

    def header_version(self, version: int) -> int:
        """Returns the version of the header before a request or response of this version.

        Requests: 2 if flexible, otherwise 1. Responses: 1 if flexible, otherwise 0; always 0 for ApiVersions, as its
        client doesn't know yet which versions the broker supports.
        """
        if self.kind is Kind.REQUEST:
            return 2 if self.flexible_in(version) else 1
        return 1 if self.flexible_in(version) and self.key != _API_VERSIONS else 0

    @property
    def api(self) -> str:
        """The name without "Request" or "Response": "Heartbeat"."""
        return self.name.removesuffix("Request").removesuffix("Response") if self.key >= 0 else self.name


class Message(Struct):
    """The base of all messages; `__message__` is the `MessageSpec`."""

    __message__: ClassVar[MessageSpec]
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
