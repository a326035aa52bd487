from __future__ import annotations

import pytest

from kohort.protocol.access_types import Operation, PatternType, Permission, ResourceType
from kohort.security.acls import Acl
from kohort.security.addresses import one_spelling, spellings
from kohort.security.standard_authorizer import StandardAuthorizer


@pytest.mark.parametrize(
    ("host", "spelled"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("kafka.example", "kafka.example"),
        ("", ""),
    ],
)
def test_one_spelling(host: str, spelled: str) -> None:
    assert one_spelling(host) == spelled


def test_both_spellings() -> None:
    assert spellings("10.0.0.7") == ("10.0.0.7",)
    assert spellings("2001:db8::1") == ("2001:db8::1", "2001:db8:0:0:0:0:0:1")
    assert "10.0.0.7" in spellings("::ffff:10.0.0.7")


@pytest.mark.parametrize("written", ["2001:db8::1", "2001:db8:0:0:0:0:0:1"])
def test_a_rule_counts_for_an_address_as_kafka_writes_it(written: str) -> None:
    """A denial that came from Kafka must not be without effect."""
    topic, read, literal = ResourceType.TOPIC, Operation.READ, PatternType.LITERAL
    authorizer = StandardAuthorizer()
    authorizer.add(Acl(topic, "*", literal, "User:alice", "*", Operation.ALL, Permission.ALLOW))
    authorizer.add(Acl(topic, "a", literal, "User:alice", written, read, Permission.DENY))
    assert not authorizer.allowed("User:alice", "2001:db8::1", read, topic, "a")
    assert authorizer.allowed("User:alice", "2001:db8::2", read, topic, "a")
