"""What a message's declaration says beside its fields: name, kind, API key, versions."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar, Final

from kohort.protocol.errors import UnsupportedVersionError
from kohort.protocol.schema import Struct

__all__ = ["Kind", "MessageSpec", "MessageStruct"]

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


class MessageStruct(Struct):
    """A struct with a `MessageSpec`: what codecs are compiled from, and `trace` interprets."""

    __message__: ClassVar[MessageSpec]
