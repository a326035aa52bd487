"""What each request of a share session says."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.client.sharing.acknowledgements import Acknowledgement, AcknowledgeType
from kohort.client.sharing.share_session import ShareSession
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest

A, B = UUID(int=1), UUID(int=2)
ACCEPTED = [Acknowledgement(3, 7, AcknowledgeType.ACCEPT)]


def named(request: ShareFetchRequest | ShareAcknowledgeRequest) -> dict[tuple[UUID, int], list[tuple[int, ...]]]:
    """The partitions of a request with their acknowledgements."""
    return {
        (topic.topic_id, each.partition_index): [
            (batch.first_offset, batch.last_offset, *batch.acknowledge_types) for batch in each.acknowledgement_batches
        ]
        for topic in request.topics
        for each in topic.partitions
    }


def forgotten(request: ShareFetchRequest) -> set[tuple[UUID, int]]:
    return {(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions}


def test_a_session_opens_with_all_partitions_and_goes_on_with_what_changes() -> None:
    session = ShareSession("g", "m")
    first = session.fetch([(A, 0), (A, 1), (B, 0)], {})
    assert (first.group_id, first.member_id, first.share_session_epoch) == ("g", "m", 0)
    assert named(first) == {(A, 0): [], (A, 1): [], (B, 0): []}
    session.succeeded()
    again = session.fetch([(A, 0), (A, 1), (B, 0)], {(A, 1): ACCEPTED})
    assert again.share_session_epoch == 1
    assert named(again) == {(A, 1): [(3, 7, 1)]} and not forgotten(again)
    session.succeeded()
    changed = session.fetch([(A, 0), (B, 1)], {})
    assert named(changed) == {(B, 1): []} and forgotten(changed) == {(A, 1), (B, 0)}


def test_acknowledging_alone_counts_too_and_changes_no_partition() -> None:
    session = ShareSession("g", "m")
    session.fetch([(A, 0)], {})
    session.succeeded()
    request = session.acknowledge({(B, 5): ACCEPTED})
    assert (request.share_session_epoch, named(request), request.is_renew_ack) == (1, {(B, 5): [(3, 7, 1)]}, False)
    session.succeeded()
    assert session.epoch == 2 and session.partitions == {(A, 0)}
    renewal = session.acknowledge({(A, 0): [Acknowledgement(1, 1, AcknowledgeType.RENEW)]})
    assert renewal.is_renew_ack
    assert session.acknowledge({}, close=True).share_session_epoch == -1


def test_after_an_error_the_session_opens_again() -> None:
    session = ShareSession("g", "m")
    session.fetch([(A, 0)], {})
    session.succeeded()
    session.reset()
    assert not session.open
    again = session.fetch([(A, 0)], {})
    assert again.share_session_epoch == 0 and named(again) == {(A, 0): []}


def test_a_request_that_was_not_answered_changes_nothing() -> None:
    session = ShareSession("g", "m")
    session.fetch([(A, 0)], {})
    session.succeeded()
    session.fetch([(A, 0), (A, 1)], {})
    assert session.partitions == {(A, 0)}


def test_epochs_wrap_past_zero_which_would_open_another_session() -> None:
    session = ShareSession("g", "m")
    session.epoch = 2**31 - 1
    session.succeeded()
    assert session.epoch == 1


def test_nothing_can_be_acknowledged_to_a_broker_that_has_locked_nothing() -> None:
    session = ShareSession("g", "m")
    with pytest.raises(AssertionError):
        session.fetch([(A, 0)], {(A, 0): ACCEPTED})
    with pytest.raises(AssertionError):
        session.acknowledge({(A, 0): ACCEPTED})
