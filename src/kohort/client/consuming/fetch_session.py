"""Fetch sessions (KIP-227): the broker remembers what it was asked for, so a request names only what has changed.

No I/O. A session is in step with the broker's as long as each request is answered; else it begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from kohort.client.types import TopicPartition
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID

__all__ = ["BY_ID", "Ask", "FetchSession"]

BY_ID: Final = 13
"""First version of Fetch that names topics by id (KIP-516)."""

_MAX_EPOCH: Final = 2**31 - 1
_Topic = FetchRequest.Topic
_Forgotten = FetchRequest.ForgottenTopicsData
_Read = FetchResponse.TopicResponse.Partition


class Ask(NamedTuple):
    """What is asked of a partition.

    Attributes:
        topic_id: zero if the topic is named instead.
        offset: where to read.
        fetch_size: bytes at most.
        leader_epoch: of the leader as far as known, -1 if not.
    """

    topic_id: UUID
    offset: int
    fetch_size: int
    leader_epoch: int


class FetchSession:
    """What one broker is asked for, request after request."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self._by_id = False
        self._asked: dict[TopicPartition, Ask] = {}

    @property
    def asked(self) -> Mapping[TopicPartition, Ask]:
        """What the broker reads now, or read for the last answer."""
        return self._asked

    def reset(self) -> None:
        """The connection broke, or an answer didn't come: begin anew."""
        self._id = self._epoch = 0
        self._asked = {}

    def request(self, wanted: Mapping[TopicPartition, Ask], *, by_id: bool) -> FetchRequest:
        """The next request; the caller sets times and sizes.

        Args:
            wanted: everything to read.
            by_id: whether topics are named by id: all of `wanted` has one then.
        """
        if by_id != self._by_id:
            self.reset()
        if not self._id:
            self._asked = {}
        changed = {at: ask for at, ask in wanted.items() if self._asked.get(at) != ask}
        gone = [(at, ask) for at, ask in self._asked.items() if at not in wanted]
        # A topic made anew under its old name is another one to the broker: the old one has to be forgotten, too.
        gone += [(at, self._asked[at]) for at, ask in changed.items() if self._replaced(at, ask)]
        self._asked, self._by_id = dict(wanted), by_id
        topics: dict[str, _Topic] = {}
        for at, ask in changed.items():
            topic = topics.get(at.topic)
            if topic is None:
                topic = topics[at.topic] = _Topic(topic=at.topic, topic_id=ask.topic_id)
            topic.partitions.append(
                _Topic.Partition(
                    partition=at.partition,
                    current_leader_epoch=ask.leader_epoch,
                    fetch_offset=ask.offset,
                    partition_max_bytes=ask.fetch_size,
                )
            )
        forgotten: dict[tuple[str, UUID], list[int]] = {}
        for at, ask in gone:
            forgotten.setdefault((at.topic, ask.topic_id), []).append(at.partition)
        return FetchRequest(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                _Forgotten(topic=name, topic_id=topic_id, partitions=tuple(partitions))
                for (name, topic_id), partitions in forgotten.items()
            ],
        )

    def answered(self, answer: FetchResponse) -> list[tuple[TopicPartition, Ask, _Read]]:
        """What came of what was asked for; nothing of a partition without news.

        A session-wide error, or an answer that doesn't belong to the session, begins it anew.
        """
        if answer.error_code:
            self.reset()
            return []
        if answer.session_id != self._id:
            # The broker opens a session, or (0) has no room for one: then each request is whole.
            self._id, self._epoch = answer.session_id, 0
        if self._id:
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        names = {ask.topic_id: at.topic for at, ask in self._asked.items()} if self._by_id else {}
        came = []
        for topic in answer.responses:
            name = names.get(topic.topic_id) if self._by_id else topic.topic
            if name is None:
                continue
            for read in topic.partitions:
                at = TopicPartition(name, read.partition_index)
                ask = self._asked.get(at)
                if ask is not None:
                    came.append((at, ask, read))
        return came

    def _replaced(self, at: TopicPartition, ask: Ask) -> bool:
        old = self._asked.get(at)
        return old is not None and old.topic_id not in (NO_UUID, ask.topic_id)
