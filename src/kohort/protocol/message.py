"""What travels by itself: requests, responses, headers, and data inside other messages or in a log.

A message is a struct with a name, versions and an API key; `encode` and `decode` are its two verbs.
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
    """What a message is."""

    REQUEST = "request"
    RESPONSE = "response"
    HEADER = "header"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """What a message's declaration says besides its fields.

    Attributes:
        name: Kafka's name, such as "HeartbeatRequest".
        kind: request, response, header or data.
        key: the API's key, or the record type of what coordinators persist; -1 for neither.
        versions: the versions that can be encoded and decoded.
        flexible_since: first version with compact lengths and tagged fields (KIP-482); `NEVER` if none.
    """

    name: str
    kind: Kind
    key: int
    versions: range
    flexible_since: int

    def flexible_in(self, version: int) -> bool:
        """Whether the version has compact lengths and tagged fields."""
        return version >= self.flexible_since

    def check_version(self, version: int) -> None:
        """Raise `UnsupportedVersionError` for a version that there is not."""
        if version not in self.versions:
            known = f"{self.versions[0]} to {self.versions[-1]}"
            raise UnsupportedVersionError(self.name, version, "", None, f"no such version; Kohort speaks {known}")

    def header_version(self, version: int) -> int:
        """Version of the header before a request or response of this version.

        Requests: 2 where flexible, else 1. Responses: 1 where flexible, else 0; ApiVersions always has 0, since the
        client that reads it doesn't know yet which versions the broker speaks.
        """
        if self.kind is Kind.REQUEST:
            return 2 if self.flexible_in(version) else 1
        return 1 if self.flexible_in(version) and self.key != _API_VERSIONS else 0

    @property
    def api(self) -> str:
        """The name without "Request" or "Response": "Heartbeat"."""
        return self.name.removesuffix("Request").removesuffix("Response") if self.key >= 0 else self.name


class Message(Struct):
    """Base of all that is encoded by itself; `__message__` is its `MessageSpec`."""

    __message__: ClassVar[MessageSpec]
    __kind__: ClassVar[Kind] = Kind.DATA

    __codecs__: ClassVar[CodecTable]

    @classmethod
    def __declare__(cls, *, versions: str | None = None, key: int = -1, flexible: int = NEVER, **options: Any) -> None:
        """Take the options of the class statement.

        Args:
            versions: the versions, as "0-4" or "0"; none for an abstract base.
            key: API key or record type.
            flexible: the first version with compact lengths and tagged fields.
            options: none are known.
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
        """The message's bytes in a version.

        Raises:
            UnsupportedVersionError: no such version, or a field is set that the version doesn't have.
            ProtocolError: a value doesn't fit its field.
        """
        return self.__codecs__[version].encode(self)  # type: ignore[no-any-return]

    @classmethod
    def decode(cls, data: Buffer, version: int) -> Self:
        """The message that `data` holds, all of it.

        Raises:
            UnsupportedVersionError: no such version.
            ProtocolError: the bytes are not the message; names field and byte.
        """
        return cls.__codecs__[version].decode(data)  # type: ignore[no-any-return]

    @classmethod
    def read(cls, data: Buffer, pos: int, version: int) -> tuple[Self, int]:
        """The message at `pos`, and the position after it; more may follow, such as a body after its header.

        Raises:
            UnsupportedVersionError: no such version.
            ProtocolError: the bytes are not the message; its offset counts from `pos`.
        """
        return cls.__codecs__[version].read(data, pos)


class Request(Message):
    """What a client sends."""

    __kind__: ClassVar[Kind] = Kind.REQUEST


class Response(Message):
    """What a broker answers."""

    __kind__: ClassVar[Kind] = Kind.RESPONSE


class Header(Message):
    """What stands before a request or a response."""

    __kind__: ClassVar[Kind] = Kind.HEADER


class Data(Message):
    """What travels inside other messages, or lies in a log: embedded protocols, coordinator and control records."""
