"""Makes kafka.jsonl: messages encoded by Apache Kafka's own classes.

    python -m tests.protocol.vectors.make 'jars/*' > tests/protocol/vectors/kafka.jsonl
    python -m tests.protocol.vectors.make 'newer-jars/*' StreamsGroupHeartbeatRequest:1 … >> …

The argument is a Java class path with kafka-clients, kafka-group-coordinator, kafka-transaction-coordinator,
kafka-share-coordinator (4.2.0), and Jackson; versions that are newer are made by name, with kafka-clients 4.4.0.
Messages are drawn at random; Kafka reads them in its own JSON and
writes the bytes. Kafka's JSON can't carry record batches, so messages with records are left out.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from kohort.protocol.json_form import to_json
from kohort.protocol.message import Kind, Message
from kohort.protocol.schema import Array, Scalar, Struct, StructType, Type, walk_structs
from kohort.protocol.stored import OFFSETS_TOPIC, TRANSACTION_TOPIC, record_types

from ..everything import RandomMessages, message_versions

# Kafka 4.2.0 is older than these versions; its own class for the record type is no message.
UNKNOWN_TO_KAFKA = {
    ("DescribeLogDirsRequest", 5),
    ("DescribeLogDirsResponse", 5),
    ("BrokerHeartbeatRequest", 2),
    ("BrokerHeartbeatResponse", 2),
    ("StreamsGroupHeartbeatRequest", 1),
    ("StreamsGroupHeartbeatResponse", 1),
    ("ApiVersionsRequest", 5),
    ("ApiVersionsResponse", 5),
    ("DeleteGroupsRequest", 3),
    ("DeleteGroupsResponse", 3),
    ("StreamsGroupDescribeRequest", 1),
    ("StreamsGroupDescribeResponse", 1),
    ("StreamsGroupTopologyDescriptionUpdateRequest", 0),
    ("StreamsGroupTopologyDescriptionUpdateResponse", 0),
    ("TxnOffsetCommitRequest", 6),
    ("TxnOffsetCommitResponse", 6),
    ("ControlRecordTypeSchema", 0),
}


class SmallMessages(RandomMessages):
    """Short strings, finite numbers: what a JSON vector can hold and a reader can bear."""

    def scalar(self, kind: Scalar) -> Any:
        if kind.name == "float64":
            return self.random.choice((0.0, 0.5, -1e9))
        if kind.name == "string":
            return self.random.choice(("", "a", "orders", "Ж-漢🙂"))
        if kind.name == "bytes":
            return self.random.randbytes(self.random.choice((0, 1, 9)))
        return super().scalar(kind)


def kafka_json(kind: Type, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, StructType):
        return kafka_struct(value, version)
    if isinstance(kind, Array):
        return [kafka_json(kind.element, item, version) for item in value]
    if isinstance(value, uuid.UUID):
        return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def kafka_struct(value: Struct, version: int) -> dict[str, Any]:
    return {
        field.name[:1].lower() + field.name[1:]: kafka_json(field.type, getattr(value, field.attr), version)
        for field in value.__wire_fields__
        if field.in_version(version) and not (field.tag is not None and getattr(value, field.attr) == field.default)
    }


def java_class(message: type[Message]) -> str:
    for record in record_types():
        if message in (record.key, record.value):
            package = {OFFSETS_TOPIC: "group", TRANSACTION_TOPIC: "transaction"}.get(record.topic, "share")
            return f"org.apache.kafka.coordinator.{package}.generated.{message.__name__}"
    suffix = "" if message.__message__.kind is Kind.DATA else "Data"
    return f"org.apache.kafka.common.message.{message.__name__}{suffix}"


def main(class_path: str, *names: str) -> None:
    cases = []
    for message, version in message_versions():
        has_records = any(
            field.type.name == "records" for part in walk_structs(message) for field in part.__wire_fields__
        )
        known = (
            f"{message.__name__}:{version}" in names if names else (message.__name__, version) not in UNKNOWN_TO_KAFKA
        )
        if has_records or not known:
            continue
        draw = SmallMessages(f"{message.__name__} {version}")
        cases += [(message, version, draw.message(message, version)) for _ in range(2)]
    lines = [
        json.dumps({"class": java_class(message), "version": version, "json": kafka_struct(value, version)})
        for message, version, value in cases
    ]
    source = Path(__file__).with_name("FromKafka.java")
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-cp", class_path, "-d", classes, source], check=True)
        command = ["java", "-cp", f"{classes}:{class_path}", "FromKafka"]
        answers = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    for (message, version, value), answer in zip(cases, answers.splitlines(), strict=True):
        assert not answer.startswith("error"), (message, version, answer)
        vector = {"message": message.__name__, "version": version, "hex": answer, "json": to_json(value, version)}
        print(json.dumps(vector, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])
