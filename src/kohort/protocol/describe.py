"""Descriptions of messages from their declarations: the wire format, the schema, and an encoded example.

`describe` returns plain data; the inspector renders it.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Any, Final

from kohort.protocol.json_form import to_json
from kohort.protocol.message import Kind, Message
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.schema import Array, Field, Scalar, Struct, StructType, Type, fields_of

__all__ = ["Description", "Part", "describe", "example_of"]


@dataclass(frozen=True, slots=True)
class Part:
    """A field on the wire.

    Attributes:
        name: Kafka's name; "message_size" and "tagged fields" for parts that aren't fields.
        type: "int32", "string", "[]Topic" …; with "(compact)" where the length is a varint.
        size: bytes; None if variable.
        nullable: whether it may be null.
        tag: the tag's number for a tagged field.
        doc: what it means.
        parts: the fields within a struct or an array of structs.
    """

    name: str
    type: str
    size: int | None
    nullable: bool
    tag: int | None
    doc: str
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Description:
    """A message in one version.

    Attributes:
        name, version, kind, key: of the message; the key is an API's, a record type's, or -1.
        versions: first and last version.
        flexible: whether lengths are compact and tagged fields may follow.
        doc: what the message is for.
        history: changes by version, as (version, change).
        header: name of the header before it ("Request Header v2"), or "" for data.
        header_parts, parts: the fields of both.
        schema: the message as one line of names and types.
        example: a message of plausible values, as JSON objects.
        example_bytes: the same, encoded.
    """

    name: str
    version: int
    kind: Kind
    key: int
    versions: tuple[int, int]
    flexible: bool
    doc: str
    history: tuple[tuple[int, str], ...]
    header: str
    header_parts: tuple[Part, ...]
    parts: tuple[Part, ...]
    schema: str
    example: dict[str, Any]
    example_bytes: bytes


def describe(cls: type[Message], version: int) -> Description:
    """Describes a message in a version.

    Raises:
        UnsupportedVersionError: no such version.
    """
    spec = cls.__message__
    spec.check_version(version)
    flexible = spec.flexible_in(version)
    example = example_of(cls, version)
    summary, history = _docstring(cls)
    header, header_parts = _header(cls, version)
    return Description(
        name=spec.name,
        version=version,
        kind=spec.kind,
        key=spec.key,
        versions=(spec.versions[0], spec.versions[-1]),
        flexible=flexible,
        doc=summary,
        history=history,
        header=header,
        header_parts=header_parts,
        parts=_parts(cls, version, flexible),
        schema=_schema(cls, version),
        example=to_json(example, version),
        example_bytes=example.encode(version),
    )


def _docstring(cls: type[Message]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The summary of a message, and the changes in its docstring, listed as "- v3: what is new"."""
    text = cls.__doc__ or ""
    history = tuple(
        (int(version), change) for version, change in re.findall(r"^\s*- v(\d+): (.*)$", text, re.MULTILINE)
    )
    return text.split("\n", 1)[0].strip(), history


def _header(cls: type[Message], version: int) -> tuple[str, tuple[Part, ...]]:
    spec = cls.__message__
    if spec.kind not in (Kind.REQUEST, Kind.RESPONSE):
        return "", ()
    header: type[Message] = RequestHeader if spec.kind is Kind.REQUEST else ResponseHeader
    number = spec.header_version(version)
    size = Part("message_size", "int32", 4, False, None, "Bytes that follow.")
    flexible = header.__message__.flexible_in(number)
    return f"{spec.kind.value.title()} Header v{number}", (size, *_parts(header, number, flexible))


def _parts(cls: type[Struct], version: int, flexible: bool) -> tuple[Part, ...]:
    plain, tagged = fields_of(cls, version, flexible)
    parts = [_part(field, version, flexible, None) for field in plain]
    if flexible:
        inner = tuple(_part(field, version, flexible, tag) for tag, field in tagged.items())
        parts.append(Part("tagged fields", "var", None, False, None, "", inner))
    return tuple(parts)


def _part(field: Field, version: int, flexible: bool, tag: int | None) -> Part:
    kind = field.type
    inner = kind.element if isinstance(kind, Array) else kind
    return Part(
        name=field.name,
        type=_type_text(kind, flexible and field.compact),
        size=kind.size or None if isinstance(kind, Scalar) else None,
        nullable=field.nullable_in(version),
        tag=tag,
        doc=field.doc,
        parts=_parts(inner.cls, version, flexible) if isinstance(inner, StructType) else (),
    )


def _type_text(kind: Type, compact: bool) -> str:
    has_length = isinstance(kind, Array) or (isinstance(kind, Scalar) and not kind.code)
    return f"{kind.name} (compact)" if compact and has_length else kind.name


def _schema(cls: type[Struct], version: int) -> str:
    fields = [
        f'"{field.name}": {_schema_type(field.type, version)}{"?" if field.nullable_in(version) else ""}'
        for field in cls.__wire_fields__
        if field.in_version(version)
    ]
    return "{ " + ", ".join(fields) + " }" if fields else "{}"


def _schema_type(kind: Type, version: int) -> str:
    if isinstance(kind, Array):
        return f"[{_schema_type(kind.element, version)}]"
    return _schema(kind.cls, version) if isinstance(kind, StructType) else kind.name


# Examples

_EXAMPLES: Final[dict[str, Any]] = {
    "ThrottleTimeMs": 0,
    "GroupId": "order-processors",
    "Group": "order-processors",
    "MemberId": "consumer-1-abc123",
    "GroupState": "Stable",
    "State": "Stable",
    "ClientId": "my-app",
    "ClientHost": "192.168.1.100",
    "Host": "broker-1.kafka.local",
    "Port": 9092,
    "NodeId": 1,
    "BrokerId": 1,
    "LeaderId": 1,
    "ReplicaId": -1,
    "ControllerId": 1,
    "Coordinator": 1,
    "ClusterId": "MkU3OEVBNTcwNTJENDM2Qg",
    "AssignorName": "uniform",
    "ProtocolType": "consumer",
    "ProtocolName": "range",
    "SubtopologyId": "0",
    "TransactionalId": "payments",
    "ProducerId": 4000,
    "ProducerEpoch": 0,
    "SessionTimeoutMs": 45000,
    "RebalanceTimeoutMs": 300000,
    "HeartbeatIntervalMs": 5000,
    "TaskOffsetIntervalMs": 60000,
    "AcceptableRecoveryLag": 10000,
    "ProcessId": "0e9b2c8e-63d4-4f61-9d5c-3a6f1b5c7a10",
    "GenerationId": 7,
    "RequestApiKey": 12,
    "CorrelationId": 42,
    "Acks": -1,
    "Mechanism": "SCRAM-SHA-256",
    "Rack": "rack-a",
    "RackId": "rack-a",
    "User": "alice",
    "Principal": "User:alice",
}
"""Realistic values by field; other fields get values by type."""


def example_of(cls: type[Message], version: int) -> Message:
    """Makes a message of plausible values: no errors, one element an array, null where null means "none"."""
    made = _example_struct(cls, version)
    assert isinstance(made, cls)
    return made


def _example_struct(cls: type[Struct], version: int) -> Struct:
    return cls(
        **{
            field.attr: _example_value(field, field.type, version)
            for field in cls.__wire_fields__
            if field.in_version(version)
        }
    )


def _example_value(field: Field, kind: Type, version: int) -> Any:
    if isinstance(kind, Array):
        if isinstance(kind.element, Scalar) and kind.element.name.startswith("int"):
            return (1, 2, 3)
        element = _example_value(field, kind.element, version)
        return (element,) if isinstance(kind.element, Scalar) else [element]
    if isinstance(kind, StructType):
        return _example_struct(kind.cls, version)
    assert isinstance(kind, Scalar)
    if field.nullable_in(version) and re.search(r"Error|Instance|Records$", field.name):
        return None
    known = _EXAMPLES.get(field.name)
    if known is not None and isinstance(known, type(kind.zero)) and not isinstance(kind.zero, bool):
        return known
    return _by_type(field.name, kind)


def _by_type(name: str, kind: Scalar) -> Any:
    match kind.name:
        case "bool":
            return False
        case "string":
            if re.search(r"Topic|^Name$", name):
                return "orders"
            return f"{re.sub(r'(?<=[a-z])(?=[A-Z])', '-', name).lower()}-1"
        case "uuid":
            return uuid.UUID("550e8400-e29b-41d4-a716-446655440000")
        case "bytes" | "records":
            return b""
        case "float64":
            return 0.5
    if "Error" in name:
        return 0
    if name.endswith(("Timestamp", "TimestampMs")):
        return 1_767_225_600_000 if kind.name == "int64" else 0
    if "Epoch" in name or name.endswith("Generation"):
        return 12
    if name.endswith("Ms"):
        return 30000
    return 100 if "Offset" in name else 1
