"""Every message and version that kio has, encoded here and decoded there, and the other way round.

kio (a client library's schemas, generated from Kafka's own definitions) has one class a version, with types of its
own: `timedelta`, `datetime`, error codes, None for the zero UUID. Each field's `kafka_type` says which.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import io
import re
import typing
import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kohort.protocol.error_codes import ErrorCode
from kohort.protocol.message import Kind, Message
from kohort.protocol.schema import Array, Scalar, Struct, StructType, Type

from .everything import MESSAGES, RandomMessages, label

ROUNDS = 12
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kio_name(message: type[Message]) -> str:
    name = message.__message__.name
    if message.__message__.kind in (Kind.REQUEST, Kind.RESPONSE):
        name = message.__message__.api
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return name.lower()


ENTITY_TYPES = {
    Kind.REQUEST: EntityType.request,
    Kind.RESPONSE: EntityType.response,
    Kind.HEADER: EntityType.header,
    Kind.DATA: EntityType.data,
}


def kio_versions(message: type[Message]) -> dict[int, str]:
    """Kio's versions of a message, with the path of the class."""
    entity = ENTITY_TYPES[message.__message__.kind]
    by_version = schema_name_map.get(kio_name(message), {})
    return {version: paths[entity] for version, paths in by_version.items() if entity in paths}


def kio_class(path: str) -> Any:
    import pkgutil

    return pkgutil.resolve_name(path)


class Pairs(RandomMessages):
    """Draws a value of ours and kio's idea of the same value, side by side."""

    def pair(self, cls: type[Struct], theirs: Any, message: type[Message], version: int) -> tuple[Any, Any]:
        present = [field for field in cls.__wire_fields__ if field.in_version(version)]
        kio_fields, hints = _fields_and_hints(theirs)
        assert len(present) == len(kio_fields), (cls, [f.name for f in present], [f.name for f in kio_fields])
        ours_values, kio_values = {}, {}
        for field, kio_field in zip(present, kio_fields, strict=True):
            assert field.attr.startswith(kio_field.name.rstrip("_").removesuffix("_ms")), (field, kio_field.name)
            tagged = field.tag is not None
            assert tagged == ("tag" in kio_field.metadata)
            if tagged:
                assert field.tag == kio_field.metadata["tag"]
            if tagged and kio_field.default is not dataclasses.MISSING and self.random.random() < 0.4:
                continue
            kind = kio_field.metadata.get("kafka_type", "")
            # In kio a tagged field is null by being absent, and null can't be sent.
            nullable = field.nullable_in(version) and not tagged
            if kind not in ("uuid", "datetime_i64") and not tagged:  # None has another meaning there
                assert nullable == _optional(hints[kio_field.name]), field
            if nullable and self.random.random() < 0.3:
                ours, kios = None, None
            else:
                ours, kios = self.both(field.type, kind, hints[kio_field.name], message, version)
                if isinstance(field.type, StructType) and field.optional and ours == field.type.cls():
                    ours = None  # kio doesn't write a tagged field with its default
            ours_values[field.attr], kio_values[kio_field.name] = ours, kios
        return cls(**ours_values), theirs(**kio_values)

    def both(self, kind: Type, kafka_type: str, hint: Any, message: type[Message], version: int) -> tuple[Any, Any]:
        if isinstance(kind, StructType):
            return self.pair(kind.cls, _entity(hint), message, version)
        if isinstance(kind, Array):
            pairs = [self.both(kind.element, kafka_type, hint, message, version) for _ in range(self.length())]
            ours = [ours for ours, _ in pairs]
            return tuple(ours) if isinstance(kind.element, Scalar) else ours, tuple(kios for _, kios in pairs)
        assert isinstance(kind, Scalar)
        match kafka_type:
            case "timedelta_i32" | "timedelta_i64":
                value = self.random.randint(-(2**31), 2**31 - 1)
                return value, datetime.timedelta(milliseconds=value)
            case "datetime_i64":
                value = self.random.randrange(4_000_000_000) * 1000
                return value, EPOCH + datetime.timedelta(milliseconds=value)
            case "error_code":
                code = self.random.choice(list(KioErrorCode))
                return code.value, code
            case "uuid":
                value = self.scalar(kind)
                return value, None if value == uuid.UUID(int=0) else value
            case _:
                assert kafka_type in (kind.name, "uint8"), (kind, kafka_type)
                value = self.scalar(kind)
                return value, value


@functools.cache
def _fields_and_hints(theirs: Any) -> tuple[tuple[dataclasses.Field[Any], ...], dict[str, Any]]:
    return dataclasses.fields(theirs), typing.get_type_hints(theirs)


def _optional(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _entity(hint: Any) -> Any:
    """The dataclass somewhere in a type hint such as `tuple[Topic, ...] | None`."""
    if dataclasses.is_dataclass(hint):
        return hint
    for argument in typing.get_args(hint):
        if found := _entity(argument):
            return found
    return None


CASES = [(message, version) for message in MESSAGES for version in kio_versions(message)]


@pytest.mark.parametrize(("message", "version"), CASES, ids=label)
def test_kio_reads_what_we_write_and_we_read_what_kio_writes(message: type[Message], version: int) -> None:
    theirs = kio_class(kio_versions(message)[version])
    pairs = Pairs(f"{message.__name__}{version}")
    for _ in range(ROUNDS):
        ours, kios = pairs.pair(message, theirs, message, version)
        encoded = ours.encode(version)
        decoded, size = entity_reader(theirs)(encoded, 0)
        assert size == len(encoded)
        assert decoded == kios
        buffer = io.BytesIO()
        entity_writer(theirs)(buffer, kios)
        assert message.decode(buffer.getvalue(), version) == ours


def test_every_schema_of_kio_is_covered() -> None:
    covered = {(kio_name(message), version) for message, version in CASES}
    everything = {(name, version) for name, versions in schema_name_map.items() for version in versions}
    assert everything == covered


def test_versions_are_those_of_kio() -> None:
    differing = {
        message.__name__: (list(message.__message__.versions), sorted(kio_versions(message)))
        for message in MESSAGES
        if kio_versions(message) and list(message.__message__.versions) != sorted(kio_versions(message))
    }
    # Kafka 4.4's, and newer than kio.
    assert differing == {
        "ApiVersionsRequest": ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]),
        "ApiVersionsResponse": ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4]),
        "DeleteGroupsRequest": ([0, 1, 2, 3], [0, 1, 2]),
        "DeleteGroupsResponse": ([0, 1, 2, 3], [0, 1, 2]),
        "StreamsGroupDescribeRequest": ([0, 1], [0]),
        "StreamsGroupDescribeResponse": ([0, 1], [0]),
        "StreamsGroupHeartbeatRequest": ([0, 1], [0]),
        "StreamsGroupHeartbeatResponse": ([0, 1], [0]),
        "TxnOffsetCommitRequest": ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5]),
        "TxnOffsetCommitResponse": ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5]),
    }


def test_error_codes_are_those_of_kio() -> None:
    newer = {ErrorCode.GROUP_DELETION_FAILED, ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED}
    assert {(code.name, code.value, code.retriable) for code in set(ErrorCode) - newer} == {
        (code.name.upper(), code.value, code.retriable) for code in KioErrorCode
    }
