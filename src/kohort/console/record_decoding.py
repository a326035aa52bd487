"""What keys and values of records are: by a schema registry's ids, as Kafka's own state, or as plain bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from kohort.console.words import visible
from kohort.protocol.errors import ProtocolError
from kohort.protocol.json_form import to_json
from kohort.protocol.stored import INTERNAL_TOPICS, decode_key
from kohort.schema_registry.avro_values import AvroSchema
from kohort.schema_registry.protobuf_text import ProtobufSchema
from kohort.schema_registry.protobuf_values import decode_message, message_indexes
from kohort.schema_registry.registry import AVRO, PROTOBUF, RegisteredSchema, RegistryError, UnknownSchemaError
from kohort.schema_registry.value_error import ValueFault

__all__ = ["Decoded", "RecordDecoder", "Schemas"]

HEADER: Final = 5
"""Bytes before a value of a registry: a zero, and the schema's id."""

MOST_SCHEMAS: Final = 200
"""Schemas that are kept, parsed."""

PAUSE_S: Final = 5.0
"""For how long a registry that doesn't answer isn't asked again: a page has many records."""

MOST_UNKNOWN: Final = 50
"""Ids that the registry may not have, in that time: bytes that begin with a zero needn't be of a registry."""

UNKNOWN_S: Final = 10.0
"""For how long an id that it hasn't isn't asked for again."""

_MOST_REMEMBERED: Final = 1_000
"""Of those."""

_MOST_DEPTH: Final = 50
_STATE_TOPICS: Final = ("-changelog", "-repartition")


class Schemas(Protocol):
    """What knows the schemas of ids; `RegistryClient` does."""

    def by_id(self, schema_id: int) -> RegisteredSchema:
        """Raises UnknownSchemaError: there is none. RegistryError: that can't be known."""
        ...


class Decoded(NamedTuple):
    """Bytes that mean something.

    Attributes:
        value: what they mean, as JSON can say it; None where it isn't known, or null.
        form: what they are: "avro", "protobuf", "json schema", "kafka", "json", "text", "bytes", "null" or "empty".
        note: what else there is to say: the schema's id, or why it can't be read; "" for nothing.
    """

    value: Any
    form: str
    note: str = ""

    @property
    def text(self) -> str:
        """What is searched in: text as it is, and anything else as JSON without spaces."""
        if isinstance(self.value, str):
            return self.value
        if self.form in ("null", "empty", "bytes"):
            return ""
        try:
            return msgspec.json.encode(self.value).decode()
        except (ValueError, RecursionError):  # it is nested more deeply than can be written
            return ""


class RecordDecoder:
    """Decodes keys and values. It blocks while it asks a registry, so it belongs into a thread; any number may use it.

    Args:
        schemas: who knows the schemas of ids; None where there is no registry.
        clock: seconds, never back, by which a registry that doesn't answer is asked again.
    """

    def __init__(self, schemas: Schemas | None = None, *, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._schemas = schemas
        self._clock = clock
        self._readers: OrderedDict[int, Callable[[bytes], Decoded]] = OrderedDict()
        self._silent_until = float("-inf")
        self._why = ""
        self._unknown: dict[int, tuple[float, str]] = {}  # until when, and why
        self._counted, self._counted_since = 0, float("-inf")
        self._asking, self._keeping = threading.Lock(), threading.Lock()

    def key(self, topic: str, data: bytes | None) -> Decoded:
        """A record's key."""
        if topic in INTERNAL_TOPICS and data is not None:
            try:
                kind, key = decode_key(topic, data)
            except (ProtocolError, ValueError) as error:
                return Decoded(None, "bytes", str(error))
            return Decoded({kind.name: to_json(key, 0)}, "kafka")
        return self._plain(data)

    def value(self, topic: str, key: bytes | None, data: bytes | None) -> Decoded:
        """A record's value; `key` is that of the same record."""
        if topic in INTERNAL_TOPICS and data is not None and key is not None:
            try:
                kind, _ = decode_key(topic, key)
                value, version = kind.decode_value(data)
            except (ProtocolError, ValueError) as error:
                return Decoded(None, "bytes", str(error))
            return Decoded(_opened(to_json(value, version)), "kafka", f"{kind.name}, version {version}")
        if data is None and (topic in INTERNAL_TOPICS or topic.endswith(_STATE_TOPICS)):
            return Decoded(None, "null", "deletes the key")
        found = self._plain(data)
        state = found.value.get("state") if topic.endswith(_STATE_TOPICS) and isinstance(found.value, dict) else None
        if isinstance(state, dict):  # an aggregate's
            return Decoded(found.value | {"state": _opened(state)}, found.form, "results, and their state")
        return found

    def _plain(self, data: bytes | None) -> Decoded:
        if data is None:
            return Decoded(None, "null")
        if not data:
            return Decoded(None, "empty")
        if data[0] == 0 and len(data) >= HEADER:
            return self._registered(int.from_bytes(data[1:HEADER], "big"), data[HEADER:])
        try:
            if data.lstrip()[:1] in (b"{", b"["):
                return Decoded(msgspec.json.decode(data), "json")
            text = data.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            try:
                text = data.decode()
            except UnicodeDecodeError:
                return Decoded(None, "bytes")
        if any(char < " " and char not in "\t\n\r" for char in text):
            return Decoded(None, "bytes")
        return Decoded(text, "text")

    def _registered(self, schema_id: int, body: bytes) -> Decoded:
        """A value with an id before it; without a registry, or if it doesn't have the id, bytes that say so."""
        what = f"schema {schema_id}"
        if self._schemas is None:
            return Decoded(None, "bytes", f"it may be of {what}: --schema-registry names who has it")
        try:
            return self._reader(schema_id)(body)
        except UnknownSchemaError as error:
            return Decoded(None, "bytes", visible(str(error)))
        except RegistryError as error:
            return Decoded(None, "bytes", f"{what}: {visible(str(error))}")
        except (ValueFault, RecursionError) as error:
            return Decoded(None, "bytes", f"{what}: {visible(str(error))}")

    def _reader(self, schema_id: int) -> Callable[[bytes], Decoded]:
        assert self._schemas is not None
        with self._keeping:
            if (known := self._readers.get(schema_id)) is not None:
                self._readers.move_to_end(schema_id)
                return known
            until, why = self._unknown.get(schema_id, (float("-inf"), ""))
        if self._clock() < until:
            raise UnknownSchemaError(why)
        with self._asking:  # one request at a time, however many pages there are
            if self._clock() < self._silent_until:
                raise RegistryError(self._why)
            try:
                found = _reader_of(self._schemas.by_id(schema_id))
            except UnknownSchemaError as error:
                self._is_unknown(schema_id, str(error))
                raise
            except RegistryError as error:
                self._be_silent(str(error))
                raise
        with self._keeping:
            self._readers[schema_id] = found
            while len(self._readers) > MOST_SCHEMAS:
                self._readers.popitem(last=False)
        return found

    def _is_unknown(self, schema_id: int, why: str) -> None:
        """Remembers an id that the registry hasn't: numbers as keys all have the same, and it is asked for once."""
        now = self._clock()
        with self._keeping:
            self._unknown.pop(schema_id, None)
            self._unknown[schema_id] = now + UNKNOWN_S, why
            while len(self._unknown) > _MOST_REMEMBERED:
                del self._unknown[next(iter(self._unknown))]
        if now - self._counted_since >= PAUSE_S:
            self._counted, self._counted_since = 0, now
        self._counted += 1
        if self._counted >= MOST_UNKNOWN:
            self._be_silent("it isn't asked for a while, as it hadn't so many ids")

    def _be_silent(self, why: str) -> None:
        self._silent_until, self._why, self._counted = self._clock() + PAUSE_S, why, 0


def _reader_of(schema: RegisteredSchema) -> Callable[[bytes], Decoded]:
    """What reads values of a schema; of one that can't be read, what says so."""
    note = f"schema {schema.id}"
    try:
        if schema.kind == AVRO:
            avro = AvroSchema(schema.text, schema.references)
            return lambda body: Decoded(avro.decode(body), "avro", note)
        if schema.kind == PROTOBUF:
            protobuf = ProtobufSchema(schema.text, schema.references)

            def message(body: bytes) -> Decoded:
                indexes, at = message_indexes(body)
                kind = protobuf.message(indexes)
                return Decoded(decode_message(body[at:], protobuf, kind), "protobuf", f"{note}, {kind.name}")

            return message
    except (ValueFault, RecursionError) as error:
        why = str(error)

        def fails(body: bytes) -> Decoded:
            raise ValueFault(why)

        return fails

    def json(body: bytes) -> Decoded:
        try:
            return Decoded(msgspec.json.decode(body), "json schema", note)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ValueFault("it isn't JSON") from None

    return json


def _opened(value: Any, depth: int = 0) -> Any:
    """The same, with JSON in strings as what it says: arrays and structs in a state, metadata of committed offsets.

    What lies deeper than `_MOST_DEPTH` stays as it is.
    """
    if depth > _MOST_DEPTH:
        return value
    match value:
        case dict():
            return {name: _opened(each, depth + 1) for name, each in value.items()}
        case list():
            return [_opened(each, depth + 1) for each in value]
        case str() if value[:1] in ("{", "["):
            try:
                return msgspec.json.decode(value.encode())
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                return value
    return value
