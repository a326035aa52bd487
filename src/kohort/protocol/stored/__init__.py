"""The records of coordinators' logs, one file a record type, and their index.

A key starts with an int16, the record's type, which determines the schemas of key and value. A value starts with an
int16, its version. A null value is a tombstone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

from kohort.protocol.errors import ProtocolError, UnsupportedVersionError
from kohort.protocol.message import Data
from kohort.protocol.messages import module_name

__all__ = [
    "INTERNAL_TOPICS", "OFFSETS_TOPIC", "RECORD_NAMES", "SHARE_STATE_TOPIC", "TRANSACTION_TOPIC", "RecordType",
    "decode_key", "record_type", "record_types",
]  # fmt: skip

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})
"""Topics that Kafka keeps its own state in."""

RECORD_NAMES: Final[dict[str, dict[int, str]]] = {
    OFFSETS_TOPIC: {
        0: "LegacyOffsetCommit",
        1: "OffsetCommit",
        2: "GroupMetadata",
        3: "ConsumerGroupMetadata",
        4: "ConsumerGroupPartitionMetadata",
        5: "ConsumerGroupMemberMetadata",
        6: "ConsumerGroupTargetAssignmentMetadata",
        7: "ConsumerGroupTargetAssignmentMember",
        8: "ConsumerGroupCurrentMemberAssignment",
        10: "ShareGroupMemberMetadata",
        11: "ShareGroupMetadata",
        12: "ShareGroupTargetAssignmentMetadata",
        13: "ShareGroupTargetAssignmentMember",
        14: "ShareGroupCurrentMemberAssignment",
        15: "ShareGroupStatePartitionMetadata",
        16: "ConsumerGroupRegularExpression",
        17: "StreamsGroupMetadata",
        19: "StreamsGroupMemberMetadata",
        20: "StreamsGroupTargetAssignmentMetadata",
        21: "StreamsGroupTargetAssignmentMember",
        22: "StreamsGroupCurrentMemberAssignment",
        23: "StreamsGroupTopology",
    },
    TRANSACTION_TOPIC: {0: "TransactionLog"},
    SHARE_STATE_TOPIC: {0: "ShareSnapshot", 1: "ShareUpdate"},
}
"""Names of the record types in each coordinator's topic, by the int16 at the start of their keys."""

_INT16: Final = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record type of a coordinator's topic: its number, and the schemas of its key and value."""

    topic: str
    number: int
    name: str
    key: type[Data]
    value: type[Data]

    def encode_key(self, key: Data) -> bytes:
        """Encodes a key: the record's type, then the fields.

        Raises:
            TypeError: it is another type's key.
            ProtocolError: a value doesn't fit its field.
        """
        if not isinstance(key, self.key):
            raise TypeError(f"{self.key.__name__} wanted, not {type(key).__name__}")
        return _INT16.pack(self.number) + key.encode(0)

    def encode_value(self, value: Data, version: int | None = None) -> bytes:
        """Encodes a value: its version (the newest by default), then the fields.

        Raises:
            TypeError: it is another type's value.
            ProtocolError: a value doesn't fit its field, or the version has no such field.
        """
        if not isinstance(value, self.value):
            raise TypeError(f"{self.value.__name__} wanted, not {type(value).__name__}")
        if version is None:
            version = self.value.__message__.versions[-1]
        return _INT16.pack(version) + value.encode(version)

    def decode_value(self, raw: bytes) -> tuple[Data, int]:
        """Decodes a value, and returns it with its version. Not for tombstones, which have no value.

        Raises:
            ProtocolError: it isn't a value of this type, or its version is unknown.
        """
        name = self.value.__message__.name
        version = _int16(raw, name, "version that opens a value")
        if version not in self.value.__message__.versions:
            raise UnsupportedVersionError(name, version, "", 0, f"no such version of a value in {self.topic}")
        return _body(self.value, version, raw), version


def decode_key(topic: str, raw: bytes) -> tuple[RecordType, Data]:
    """Decodes a key of a coordinator's topic, and returns the record's type with it.

    Raises:
        KeyError: the topic isn't a coordinator's.
        ProtocolError: it isn't a key, or its type is unknown.
    """
    numbers = RECORD_NAMES[topic]
    name = f"key in {topic}"
    number = _int16(raw, name, "record type that opens a key")
    if number not in numbers:
        raise ProtocolError(name, 0, "", 0, f"unknown record type {number}")
    kind = record_type(topic, number)
    return kind, _body(kind.key, 0, raw)


def _int16(raw: bytes, name: str, what: str) -> int:
    if len(raw) < _INT16.size:
        raise ProtocolError(name, 0, "", 0, f"{len(raw)} bytes are too short for the {what}")
    number: int = _INT16.unpack_from(raw)[0]
    return number


def _body(cls: type[Data], version: int, raw: bytes) -> Data:
    """Decodes what follows the int16 at the start of `raw`; a fault's offset counts from the start of `raw`."""
    try:
        return cls.decode(memoryview(raw)[_INT16.size :], version)
    except ProtocolError as error:
        offset = None if error.offset is None else error.offset + _INT16.size
        raise ProtocolError(error.message, version, error.path, offset, error.reason) from None


@cache
def record_type(topic: str, number: int) -> RecordType:
    """Returns the record type with a number in a topic.

    Raises:
        KeyError: the topic has no such type.
    """
    name = RECORD_NAMES[topic][number]
    # Types 0 and 1 are both committed offsets, in one file.
    module = import_module(f"{__name__}.{module_name(name.removeprefix('Legacy'))}")
    return RecordType(topic, number, name, getattr(module, f"{name}Key"), getattr(module, f"{name}Value"))


def record_types() -> Iterator[RecordType]:
    """Yields all record types, by topic and number."""
    for topic, names in RECORD_NAMES.items():
        for number in names:
            yield record_type(topic, number)
