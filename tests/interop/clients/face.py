"""What the tests ask of a client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

Headers = tuple[tuple[str, bytes], ...]
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


class Message(NamedTuple):
    """A record: what is written, and with its place in the partition what is read."""

    value: bytes | None = None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None  # ms
    offset: int = -1

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        return self.key, self.value, self.headers


class Transactional(Protocol):
    """A producer with a transactional id, initialized: it has fenced all earlier ones of that id."""

    fencing: type[Exception]  # what it raises when a later one has fenced it

    def begin(self) -> None: ...
    def send(self, topic: str, value: bytes) -> None:
        """Into partition 0; back once the broker has it."""

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        """The group's next offset in partition 0, as part of the transaction."""

    def commit(self) -> None: ...
    def abort(self) -> None: ...


class Client(Protocol):
    """A client library or tool. Everything is written to, and read from, partition 0."""

    name: str
    writes_timestamps: bool
    writes_bare_records: bool  # neither a key nor a value

    def produce(
        self, bootstrap: str, topic: str, messages: Sequence[Message], *, compression: str = "none", **settings: Any
    ) -> None:
        """Writes them all with acks=all, idempotently; raises if any was refused. Settings are the client's own."""

    def consume(self, bootstrap: str, topic: str, *, committed: bool = False) -> list[Message]:
        """All from the first to the last record that is there (`committed`: that may be read with read_committed)."""

    def transactional(self, bootstrap: str, transactional_id: str) -> AbstractContextManager[Transactional]: ...

    def too_large(self, error: Exception) -> bool:
        """Whether the broker has said MESSAGE_TOO_LARGE."""
