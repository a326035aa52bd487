"""Known bytes: published examples, and what Apache Kafka's own classes write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol.json_form import from_json, to_json

from .everything import MESSAGES, OURS, message_versions

VECTORS = Path(__file__).with_name("vectors")
BY_NAME = {message.__name__: message for message in MESSAGES}
PUBLISHED = json.loads((VECTORS / "wire.json").read_text())
KAFKA = [json.loads(line) for line in (VECTORS / "kafka.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("vector", PUBLISHED, ids=lambda vector: f"{vector['api']}-{vector['source']}")
def test_published_examples_encode_and_decode_to_the_byte(vector: dict[str, Any]) -> None:
    message = BY_NAME[vector["api"] + vector["kind"].capitalize()]
    raw, version = bytes.fromhex(vector["hex"]), vector["version"]
    assert from_json(message, version, vector["json"]).encode(version) == raw
    assert to_json(message.decode(raw, version), version) == vector["json"]


def test_what_kafka_writes_decodes_and_encodes_to_the_byte() -> None:
    for vector in KAFKA:
        message, version, raw = BY_NAME[vector["message"]], vector["version"], bytes.fromhex(vector["hex"])
        assert from_json(message, version, vector["json"]).encode(version) == raw, vector
        assert to_json(message.decode(raw, version), version) == vector["json"]


def test_kafka_vectors_leave_out_only_records_and_newer_versions() -> None:
    covered = {(vector["message"], vector["version"]) for vector in KAFKA}
    missing = {
        (message.__name__, version)
        for message, version in message_versions()
        if (message.__name__, version) not in covered
    }
    with_records = {"ProduceRequest", "FetchResponse", "ShareFetchResponse", "FetchSnapshotResponse"}
    newer = {
        ("DescribeLogDirsRequest", 5),
        ("DescribeLogDirsResponse", 5),
        ("BrokerHeartbeatRequest", 2),
        ("BrokerHeartbeatResponse", 2),
    }
    assert {(name, version) for name, version in missing if name not in {*with_records, *OURS}} == {
        *newer,
        ("ControlRecordTypeSchema", 0),
    }
