"""What members and coordinators agree on beyond Kafka, in tagged fields."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.heartbeat_wishes import WISHES_TAG, Grant, Wishes, grant_of, wishes_of
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

int32 = st.integers(0, 2**31 - 1)


codes = st.lists(st.integers(0, 127), max_size=50).map(sorted).map(tuple)


@given(st.builds(Wishes, st.integers(-1, 2**31 - 1), int32, codes))
def test_wishes_come_back(wishes: Wishes) -> None:
    assert wishes_of(wishes.tags()) == wishes


@given(st.builds(Grant, st.integers(-1, 2**31 - 1), int32, st.booleans()))
def test_grants_come_back(grant: Grant) -> None:
    assert grant_of(grant.tags()) == grant


def test_they_travel_in_a_heartbeat() -> None:
    request = StreamsGroupHeartbeatRequest(group_id="app", member_id="m", member_epoch=1, endpoint_information_epoch=0)
    request.unknown_tags = Wishes(1_000, 5_000, (4,)).tags()
    assert wishes_of(StreamsGroupHeartbeatRequest.decode(request.encode(1), 1).unknown_tags) == (1_000, 5_000, (4,))


def test_without_the_tag_there_is_nothing() -> None:
    for tags in (None, {}, {WISHES_TAG + 1: b"[1,2,[]]"}):
        assert wishes_of(tags) is None
        assert grant_of(tags) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"\xff", b"{}", b"[]", b"[1,2]", b'["1",2,[]]', b"[1,-2,[]]", b'[1,2,["x"]]', b"[9999999999,2,[]]",
        b"[" * 100_000, b"[" * 200,
    ],
)  # fmt: skip
def test_another_content_under_the_tag_is_none_of_ours(raw: bytes) -> None:
    assert wishes_of({WISHES_TAG: raw}) is None
    assert grant_of({WISHES_TAG: raw}) is None


@pytest.mark.parametrize(("size", "found"), [(256, Wishes(1, 2, ())), (257, None)])
def test_what_is_too_long_is_not_read(size: int, found: Wishes | None) -> None:
    assert wishes_of({WISHES_TAG: b"[1,2,[]]".ljust(size)}) == found


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_whatever_the_content_it_is_wishes_or_none(content: object) -> None:
    found = wishes_of({WISHES_TAG: json.dumps(content).encode()})
    assert found is None or (isinstance(found, Wishes) and found.max_wait_ms >= 0)
