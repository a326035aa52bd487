from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.membership.consumer_protocol import decode_assignment as client_decodes
from kohort.client.membership.consumer_protocol import encode_assignment as client_encodes
from kohort.client.membership.consumer_protocol import encode_subscription
from kohort.client.types import TopicPartition
from kohort.coordinator.conversion.embedded_protocol import decode_assignment, decode_subscription, encode_assignment
from kohort.protocol.errors import ProtocolError
from tests.coordinator.conversion.cluster import Topics, at

SUBSCRIPTION = encode_subscription({"a", "gone"}, None, [TopicPartition("a", 1), TopicPartition("gone", 0)], 3, "r1")


def test_a_subscription_with_what_is_owned_by_topic_id() -> None:
    read = decode_subscription(SUBSCRIPTION, Topics())
    assert read == (frozenset({"a", "gone"}), at("a", 1), "r1")


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    assert decode_subscription(b"\x00\x09" + SUBSCRIPTION[2:] + b"more", Topics()).topics == {"a", "gone"}


def test_assignments_there_and_back() -> None:
    assert decode_assignment(client_encodes([TopicPartition("a", 2), TopicPartition("gone", 0)]), Topics()) == (
        at("a", 2),
        False,
    )
    encoded = encode_assignment(at("b", 1) | at("a", 3, 0), SUBSCRIPTION, Topics())
    assert client_decodes(encoded) == {TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("a", 3)}
    assert decode_assignment(encoded, Topics()) == (at("b", 1) | at("a", 3, 0), False)


def test_a_member_that_never_synced_has_nothing() -> None:
    assert decode_assignment(b"", Topics()) == (frozenset(), False)


def test_user_data_of_an_assignor_of_its_own() -> None:
    assert decode_assignment(b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x", Topics()) == (frozenset(), True)


def test_an_assignment_has_the_version_of_the_subscription() -> None:
    assert encode_assignment(at("a", 0), b"\x00\x01" + SUBSCRIPTION[2:], Topics())[:2] == b"\x00\x01"
    assert encode_assignment(at("a", 0), b"\x00\x09", Topics())[:2] == b"\x00\x03"


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x00\x7f\xff\xff\xff"])
def test_bytes_that_are_none(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_subscription(data, Topics())


@given(st.binary(max_size=60))
def test_any_bytes(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data, Topics())
        except ProtocolError as error:
            assert str(error)
