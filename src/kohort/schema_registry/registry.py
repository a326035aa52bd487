"""A schema registry with Confluent's API, as a program names it; `client` asks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

AVRO: Final = "AVRO"
JSON: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"

KINDS: Final = {"avro": AVRO, "json_schema": JSON, "protobuf": PROTOBUF}
"""What the registry calls the schemas of our formats."""


class RegistryError(OSError):
    """The registry can't be asked, or refuses: no record is to blame, so the job fails, and says why."""


class UnknownSchemaError(RegistryError):
    """The registry has no such schema, or one that refers to some that it hasn't, or to too many."""


@dataclass(frozen=True)
class SchemaRegistry:
    """Where schemas are registered: Confluent's Schema Registry, or another one with its API (Karapace, Apicurio, …).

    Args:
        url: http or https, with the path under which the API lies: "https://registry:8081",
            "http://apicurio:8080/apis/ccompat/v7".
        auth: a user and a password, or a token, sent as a bearer's.
        ca_file: authorities for https, PEM; by default the system's.
        cert_file, key_file: the client's certificate and its key, PEM.
        timeout_s: the limit of a request, in seconds.
        retry_s: how long to go on asking one that doesn't answer, in seconds, before the job fails.

    Raises:
        ValueError: the URL is none, or auth is something else.
    """

    url: str
    auth: tuple[str, str] | str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout_s: float = 10.0
    retry_s: float = 30.0

    def __post_init__(self) -> None:
        """Check."""
        parts = urlsplit(self.url) if isinstance(self.url, str) else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f'SchemaRegistry({self.url!r}): give its address, as "https://registry:8081"')
        if parts.username is not None:
            raise ValueError("SchemaRegistry: say the password in auth=(user, password), not in the address")
        if isinstance(self.auth, list):
            object.__setattr__(self, "auth", tuple(self.auth))
        pair = isinstance(self.auth, tuple) and len(self.auth) == 2
        if self.auth is not None and not isinstance(self.auth, str) and not pair:
            raise ValueError("SchemaRegistry: auth is (user, password), or a token")


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as it is registered.

    Attributes:
        id: the registry's number, which is in each record.
        kind: `AVRO`, `JSON` or `PROTOBUF`.
        text: the schema itself.
        references: the schemas that it names, each after those that it names itself: (name, text).
    """

    id: int
    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()
