"""A share session: what a broker knows of the partitions that a member shares, and how many requests it has had.

| epoch | request | what it says |
| --- | --- | --- |
| 0 | ShareFetch | opens a session, with all partitions; acknowledges nothing |
| 1, 2, … | ShareFetch | the partitions that are added or leave; acknowledgements of those that stay |
| 1, 2, … | ShareAcknowledge | acknowledgements alone |
| -1 | ShareAcknowledge | the last acknowledgements; closes the session, and the broker releases what is still locked |

A session lives on one connection, one request at a time. An error of the whole request, or another connection, ends it;
the next request opens another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from uuid import UUID

from kohort.client.sharing.acknowledgements import Acknowledgement
from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest

PartitionKey = tuple[UUID, int]
"""A topic's id and a partition's number."""

Acknowledgements = Mapping[PartitionKey, Sequence[Acknowledgement]]

_OPEN: Final = 0
_CLOSE: Final = -1
_MOST: Final = 2**31 - 1

_FetchTopic = ShareFetchRequest.Topic
_Forgotten = ShareFetchRequest.ForgottenTopicsData
_AcknowledgeTopic = ShareAcknowledgeRequest.Topic


class ShareSession:
    """A member's session with one broker.

    Attributes:
        epoch: of the next request; 0 while there is no session.
        partitions: those that the broker knows.
    """

    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id, self._member_id = group_id, member_id
        self.epoch = _OPEN
        self.partitions: frozenset[PartitionKey] = frozenset()
        self._next: frozenset[PartitionKey] = frozenset()

    @property
    def open(self) -> bool:
        """Whether the broker has the session, as far as we know."""
        return self.epoch != _OPEN

    def fetch(self, wanted: Collection[PartitionKey], acknowledgements: Acknowledgements) -> ShareFetchRequest:
        """Returns a request for records of these partitions; its limits are still to be set.

        Args:
            wanted: all partitions to fetch.
            acknowledgements: of some of them; none if the session isn't open.
        """
        assert not (acknowledgements and not self.open), "a session opens without acknowledgements"
        assert acknowledgements.keys() <= set(wanted), "acknowledging would bring a partition back into the session"
        self._next = frozenset(wanted)
        named = (self._next - self.partitions) | acknowledgements.keys()
        kind = _FetchTopic.Partition
        return ShareFetchRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=self.epoch,
            topics=[
                _FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        kind(
                            partition_index=number,
                            acknowledgement_batches=[
                                kind.AcknowledgementBatch(
                                    first_offset=each.first, last_offset=each.last, acknowledge_types=(each.type,)
                                )
                                for each in acknowledgements.get((topic_id, number), ())
                            ],
                        )
                        for number in numbers
                    ],
                )
                for topic_id, numbers in _by_topic(named).items()
            ],
            forgotten_topics_data=[
                _Forgotten(topic_id=topic_id, partitions=tuple(numbers))
                for topic_id, numbers in _by_topic(self.partitions - self._next).items()
            ],
        )

    def acknowledge(self, acknowledgements: Acknowledgements, *, close: bool = False) -> ShareAcknowledgeRequest:
        """Returns a request that acknowledges, and with `close` ends the session."""
        assert self.open, "nothing was acquired without a session"
        self._next = self.partitions
        kind = _AcknowledgeTopic.Partition
        return ShareAcknowledgeRequest(
            group_id=self._group_id,
            member_id=self._member_id,
            share_session_epoch=_CLOSE if close else self.epoch,
            is_renew_ack=any(each.renews for ranges in acknowledgements.values() for each in ranges),
            topics=[
                _AcknowledgeTopic(
                    topic_id=topic_id,
                    partitions=[
                        kind(
                            partition_index=number,
                            acknowledgement_batches=[
                                kind.AcknowledgementBatch(
                                    first_offset=each.first, last_offset=each.last, acknowledge_types=(each.type,)
                                )
                                for each in acknowledgements[topic_id, number]
                            ],
                        )
                        for number in numbers
                    ],
                )
                for topic_id, numbers in _by_topic(acknowledgements).items()
            ],
        )

    def succeeded(self) -> None:
        """The broker has answered the request, without an error for all of it."""
        self.partitions = self._next
        self.epoch = 1 if self.epoch == _MOST else self.epoch + 1

    def reset(self) -> None:
        """The session has ended."""
        self.epoch = _OPEN
        self.partitions = self._next = frozenset()


def _by_topic(keys: Collection[PartitionKey]) -> dict[UUID, list[int]]:
    found: dict[UUID, list[int]] = {}
    for topic_id, number in sorted(keys):
        found.setdefault(topic_id, []).append(number)
    return found
