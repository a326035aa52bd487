"""Every declared field against Kafka's own definitions: type, versions, null, tag, ignorable, default.

`vectors/kafka_fields.jsonl` has a line a field, taken from the definitions of Kafka 4.2 (and for versions that are
newer from kio, or from Kafka 4.4): message, path, type, first and last version, first version where it may be null,
tag and first version where it is tagged, whether it may be ignored, default. Ranges are cut to what the message has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kohort.protocol.schema import Array, Struct, StructType

from .everything import MESSAGES, OURS

FIELDS = Path(__file__).with_name("vectors") / "kafka_fields.jsonl"

# Answers are made for both versions at once here, so either may be left out.
IGNORABLE_HERE = {("StreamsGroupHeartbeatResponse", "AcceptableRecoveryLag")}


def declared(cls: type[Struct], prefix: str, first: int, last: int) -> Iterator[list[Any]]:
    for field in cls.__wire_fields__:
        since, until = max(field.since, first), min(field.until, last)
        if since > until:
            continue
        inner = field.type.element if isinstance(field.type, Array) else field.type
        array = "[]" if isinstance(field.type, Array) else ""
        nullable = max(field.nullable_since, since) if field.nullable_since <= until else None
        tagged = None if field.tag is None else max(field.tagged_since, since)
        default = field.default
        if isinstance(inner, StructType) or array:
            # Kafka's "empty" of a tagged struct is our "absent".
            default = None if default is None and not field.optional else "empty"
        elif isinstance(default, bytes):
            default = default.decode()
        elif inner.name == "uuid":
            default = str(default)
        path = prefix + field.name
        kind = array + ("struct" if isinstance(inner, StructType) else inner.name)
        yield [path, kind, since, until, nullable, field.tag, tagged, field.ignorable, default]
        if isinstance(inner, StructType):
            yield from declared(inner.cls, f"{path}.", since, until)


def test_fields_are_those_of_kafka() -> None:
    kafka: dict[str, list[list[Any]]] = {}
    for line in FIELDS.read_text().splitlines():
        message, *facts = json.loads(line)
        facts[7] = facts[7] or (message, facts[0]) in IGNORABLE_HERE
        kafka.setdefault(message, []).append(facts)
    for message in MESSAGES:
        if message.__name__ in OURS:
            continue
        versions = message.__message__.versions
        ours = list(declared(message, "", versions[0], versions[-1]))
        assert ours == kafka.pop(message.__name__, []), message.__name__
    assert kafka == {}
