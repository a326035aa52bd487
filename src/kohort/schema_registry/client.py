"""What is asked of a schema registry: a few requests of Confluent's API, answered from memory where that can't change.

No library is used for it. Confluent's client brings librdkafka, httpx, authlib and more to every executor; what is
needed are four requests, whose size and time `kohort.http_request` bounds.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar
from urllib.parse import quote

from kohort.http_request import HttpRequestError, HttpStatusError, http_request
from kohort.schema_registry.registry import (
    AVRO,
    RegisteredSchema,
    RegistryError,
    SchemaRegistry,
    UnknownSchemaError,
)
from kohort.trusted_tls import trusting

_MAX_BYTES: Final = 16 << 20
_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 5.0
_MAX_REFERENCES: Final = 200
_MAX_ID: Final = (1 << 32) - 1
_UNKNOWN_S: Final = 10.0
_MAX_UNKNOWN: Final = 10_000
"""For how long an id that isn't there is remembered, and how many are: records can have any."""
_MAX_KEPT: Final = 200
"""Schemas that are kept, and ids of such: those that were asked for last."""
_AGAIN: Final = (408, 429, 500, 502, 503, 504)
"""Answers that another try may not get."""
_UNKNOWN: Final = 404
_TYPES: Final = "application/vnd.schemaregistry.v1+json"

K = TypeVar("K")
V = TypeVar("V")


class RegistryClient:
    """Asks a registry. It blocks, so it belongs into a thread that may.

    A schema of an id never changes, so each is asked for once, while the last 200 are kept; what isn't there may come
    to be, and is asked for again, an id after 10 s. One that doesn't answer is asked again for
    `SchemaRegistry.retry_s`.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._registry = registry
        self._clock, self._sleep = clock, sleep
        self._headers = {"Accept": f"{_TYPES}, application/json", "Content-Type": _TYPES} | _authorization(registry)
        self._tls = _tls(registry)
        self._by_id: dict[int, RegisteredSchema] = {}
        self._unknown: dict[int, tuple[float, str]] = {}
        self._ids: dict[tuple[str, str, str, bool], int] = {}

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema of an id.

        Raises:
            UnknownSchemaError: there is none.
            RegistryError: there's no answer, or a refusal.
        """
        if (found := self._by_id.get(schema_id)) is not None:
            return _keep(self._by_id, schema_id, found)
        until, why = self._unknown.pop(schema_id, (0.0, ""))
        if self._clock() < until:
            self._unknown[schema_id] = until, why
            raise UnknownSchemaError(why)
        what = f"schema {schema_id}"
        try:
            found = self._schema(self._ask(f"/schemas/ids/{schema_id}", what), schema_id, what)
        except UnknownSchemaError as error:
            if len(self._unknown) >= _MAX_UNKNOWN:
                del self._unknown[next(iter(self._unknown))]
            self._unknown[schema_id] = self._clock() + _UNKNOWN_S, str(error)
            raise
        return _keep(self._by_id, schema_id, found)

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject. Raises as `by_id`."""
        what = f"subject {subject!r}"
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest", what)
        return self._schema(answer, self._id(answer, what), what)

    def id_of(self, subject: str, kind: str, text: str, *, register: bool) -> int:
        """The id of a schema in a subject.

        Args:
            subject: its name.
            kind: of the schema.
            text: of the schema.
            register: whether to register it where it isn't; a subject's rules may refuse that.

        Raises:
            UnknownSchemaError: it isn't registered, and isn't to be.
            RegistryError: there's no answer, or a refusal.
        """
        asked = subject, kind, text, register
        if (found := self._ids.get(asked)) is None:
            body = {"schema": text} if kind == AVRO else {"schema": text, "schemaType": kind}
            path = f"/subjects/{quote(subject, safe='')}"
            what = f"the schema in subject {subject!r}"
            answer = self._ask(path + ("/versions" if register else ""), what, body)
            found = self._id(answer, what)
        return _keep(self._ids, asked, found)

    def _schema(self, answer: Mapping[str, Any], schema_id: int, what: str) -> RegisteredSchema:
        kind = self._text_of(answer, "schemaType", what) if answer.get("schemaType") else AVRO
        references: dict[str, str] = {}
        self._follow(answer, what, references, set())
        return RegisteredSchema(schema_id, kind, self._text_of(answer, "schema", what), tuple(references.items()))

    def _follow(
        self, answer: Mapping[str, Any], what: str, found: dict[str, str], asked: set[tuple[str, int, str]]
    ) -> None:
        """Adds what an answer refers to, each after what it refers to itself; each is asked for once."""
        for each in self._entries(answer, what):
            subject, name = (self._text_of(each, part, what) for part in ("subject", "name"))
            version = self._number(each, "version", what)
            if (subject, version, name) in asked:
                continue
            if len(asked) >= _MAX_REFERENCES:
                raise UnknownSchemaError(self._text(f"{what} refers to more than {_MAX_REFERENCES} others"))
            asked.add((subject, version, name))
            path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
            named = self._ask(path, f"what {what} refers to")
            self._follow(named, what, found, asked)
            found[name] = self._text_of(named, "schema", f"what {what} refers to")

    def _entries(self, answer: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
        entries = answer.get("references") or []
        if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
            raise self._error(f"{what}: its answer's references are no list of objects")
        return entries

    def _id(self, answer: Mapping[str, Any], what: str) -> int:
        found = self._number(answer, "id", what)
        if not 0 <= found <= _MAX_ID:
            raise self._error(f"{what}: its answer's id, {found}, isn't one of 32 bits")
        return found

    def _number(self, answer: Mapping[str, Any], name: str, what: str) -> int:
        found = answer.get(name)
        if not isinstance(found, int) or isinstance(found, bool):
            raise self._error(f"{what}: its answer has no {name} that is a number")
        return found

    def _text_of(self, answer: Mapping[str, Any], name: str, what: str) -> str:
        found = answer.get(name)
        if not isinstance(found, str):
            raise self._error(f"{what}: its answer has no {name} that is text")
        return found

    def _ask(self, path: str, what: str, body: Any = None) -> dict[str, Any]:
        end = self._clock() + self._registry.retry_s
        pause = _PAUSE_S
        while True:
            try:
                found = json.loads(self._request(path, body))
                if not isinstance(found, dict):
                    raise self._error(f"{what}: it answers with something else than an object")
                return found
            except HttpStatusError as error:
                if error.status == _UNKNOWN:
                    raise UnknownSchemaError(self._text(f"it hasn't {what}{_said(error)}")) from None
                if error.status not in _AGAIN:
                    raise self._error(f"{what}: {error}{_said(error)}") from None
                why = f"{error}{_said(error)}"
            except HttpRequestError as error:
                why = str(error)
            except (ValueError, RecursionError):
                raise self._error(f"{what}: its answer isn't JSON; is the API there, at this path?") from None
            if self._clock() + pause > end:
                raise self._error(f"{what}: {why}; asked for {self._registry.retry_s:g} s")
            self._sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_S)

    def _request(self, path: str, body: Any) -> bytes:
        return http_request(
            self._registry.url.rstrip("/") + path,
            seconds=self._registry.timeout_s,
            max_bytes=_MAX_BYTES,
            body=None if body is None else json.dumps(body).encode(),
            headers=self._headers,
            tls=self._tls,
        )

    def _error(self, why: str) -> RegistryError:
        return RegistryError(self._text(why))

    def _text(self, why: str) -> str:
        return f"schema registry {self._registry.url}: {why}"


@lru_cache(maxsize=16)
def client_of(registry: SchemaRegistry) -> RegistryClient:
    """The process's client of a registry, with what it knows already."""
    return RegistryClient(registry)


def _keep(kept: dict[K, V], key: K, value: V) -> V:
    """Keeps what was asked for last at the end; where there is too much, what is at the front goes."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > _MAX_KEPT:
        kept.pop(next(iter(kept)), None)
    return value


def _authorization(registry: SchemaRegistry) -> dict[str, str]:
    match registry.auth:
        case None:
            return {}
        case str(token):
            return {"Authorization": f"Bearer {token}"}
        case user, password:
            return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def _tls(registry: SchemaRegistry) -> ssl.SSLContext | None:
    if not registry.url.startswith("https:"):
        return None
    context = trusting(registry.ca_file)
    if registry.cert_file is not None:
        context.load_cert_chain(registry.cert_file, registry.key_file)
    return context


def _said(error: HttpStatusError) -> str:
    """What a refusal says beside its status."""
    try:
        message = json.loads(error.body)["message"]
    except (ValueError, TypeError, LookupError):
        return ""
    return f" ({str(message)[:300]})"
