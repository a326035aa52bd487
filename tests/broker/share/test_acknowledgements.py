from __future__ import annotations

import pytest

from kohort.broker.share.acknowledgements import batches_are_valid, counts_by_type
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest

Batch = ShareAcknowledgeRequest.Topic.Partition.AcknowledgementBatch


def batch(first: int, last: int, *types: int) -> Batch:
    return Batch(first_offset=first, last_offset=last, acknowledge_types=types)


@pytest.mark.parametrize(
    ("batches", "valid"),
    [
        ([], True),
        ([batch(0, 0, 1)], True),
        ([batch(0, 2, 1, 2, 3)], True),
        ([batch(0, 2, 0)], True),
        ([batch(0, 4, 1), batch(5, 9, 2)], True),
        ([batch(0, 4, 1), batch(4, 9, 2)], True),  # refused for its state, not for its form
        ([batch(0, 4, 1), batch(3, 9, 2)], False),
        ([batch(5, 9, 1), batch(0, 4, 1)], False),
        ([batch(5, 4, 1)], False),
        ([batch(-5, -2, 1)], False),
        ([batch(0, 4)], False),
        ([batch(0, 4, 1, 1)], False),
        ([batch(0, 1, 1, 1, 1)], False),
        ([batch(0, 0, 5)], False),
        ([batch(0, 0, -1)], False),
        ([batch(0, 1, 1, 4)], False),  # the request doesn't say it renews
    ],
)
def test_what_is_no_sound_acknowledgement(batches: list[Batch], valid: bool) -> None:
    assert batches_are_valid(batches, version=2, is_renew_ack=False) is valid


@pytest.mark.parametrize(("version", "valid"), [(1, False), (2, True)])
def test_locks_are_renewed_from_version_2_on(version: int, valid: bool) -> None:
    assert batches_are_valid([batch(0, 1, 1, 4)], version=version, is_renew_ack=True) is valid


def test_offsets_are_counted_by_type_without_a_loop_over_them() -> None:
    assert counts_by_type([batch(0, 2**62, 1), batch(2**62 + 1, 2**62 + 3, 2, 3, 2)]) == [0, 2**62 + 1, 2, 1, 0]
