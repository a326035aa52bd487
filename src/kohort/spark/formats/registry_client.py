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
from typing import Any, Final
from urllib.parse import quote

from kohort.http_request import HttpRequestError, HttpStatusError, http_request
from kohort.spark.formats.schema_registry import (
    AVRO,
    RegisteredSchema,
    RegistryError,
    SchemaRegistry,
    UnknownSchemaError,
)

_MAX_BYTES: Final = 16 << 20
_PAUSE_S: Final = 0.2
_MAX_PAUSE_S: Final = 5.0
_TOO_DEEP: Final = 32
_AGAIN: Final = (408, 429, 500, 502, 503, 504)
"""Answers that another try may not get."""
_UNKNOWN: Final = 404
_TYPES: Final = "application/vnd.schemaregistry.v1+json"


class RegistryClient:
    """Asks a registry. It blocks, so it belongs into a thread that may.

    A schema of an id never changes, so each is asked for once; what isn't there may come to be, and is asked for again.
    One that doesn't answer is asked again for `SchemaRegistry.retry_s`.
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
        self._ids: dict[tuple[str, str, str, bool], int] = {}

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """The schema of an id.

        Raises:
            UnknownSchemaError: there is none.
            RegistryError: there's no answer, or a refusal.
        """
        if (found := self._by_id.get(schema_id)) is None:
            answer = self._ask(f"/schemas/ids/{schema_id}", f"schema {schema_id}")
            found = self._by_id[schema_id] = self._schema(answer, schema_id)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest schema of a subject. Raises as `by_id`."""
        answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions/latest", f"subject {subject!r}")
        return self._schema(answer, int(answer["id"]))

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
            answer = self._ask(path + ("/versions" if register else ""), f"the schema in subject {subject!r}", body)
            found = self._ids[asked] = int(answer["id"])
        return found

    def _schema(self, answer: Mapping[str, Any], schema_id: int, depth: int = 0) -> RegisteredSchema:
        references: dict[str, str] = {}
        for each in answer.get("references") or ():
            if depth > _TOO_DEEP:
                raise self._error(f"schema {schema_id}: its references don't end")
            path = f"/subjects/{quote(each['subject'], safe='')}/versions/{int(each['version'])}"
            named = self._schema(self._ask(path, f"what schema {schema_id} refers to"), schema_id, depth + 1)
            references |= {**dict(named.references), each["name"]: named.text}
        kind = answer.get("schemaType") or AVRO
        return RegisteredSchema(schema_id, str(kind), str(answer["schema"]), tuple(references.items()))

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
            except ValueError:
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
    context = ssl.create_default_context(cafile=registry.ca_file)
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
