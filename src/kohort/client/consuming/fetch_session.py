"""Fetch sessions (KIP-227): the broker keeps the fetched partitions, so a request names only what has changed.

No I/O. A session is in step with the broker's as long as each request gets a response; else it is reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from kohort.client.types import TopicPartition
from kohort.protocol.messages.fetch import FetchRequest, FetchResponse
from kohort.protocol.schema import NO_UUID

BY_ID: Final = 13
"""First version of Fetch that names topics by id (KIP-516)."""

_MAX_EPOCH: Final = 2**31 - 1
_Topic = FetchRequest.Topic
_Forgotten = FetchRequest.ForgottenTopicsData
_Read = FetchResponse.TopicResponse.Partition


class PartitionFetch(NamedTuple):
    """A partition's part of a fetch request.

    Attributes:
        topic_id: zero if the topic is named instead.
        offset: where to read.
        fetch_size: bytes at most.
        leader_epoch: of the leader, -1 if unknown.
    """

    topic_id: UUID
    offset: int
    fetch_size: int
    leader_epoch: int


class FetchSession:
    def __init__(self) -> None:
        self._id = 0
        self._epoch = 0
        self._by_id = False
        self._requested: dict[TopicPartition, PartitionFetch] = {}

    @property
    def requested(self) -> Mapping[TopicPartition, PartitionFetch]:
        """The partitions of the request in flight, or of the last one."""
        return self._requested

    def reset(self) -> None:
        """Begins another session: the connection broke, or a response didn't come."""
        self._id = self._epoch = 0
        self._requested = {}

    def request(self, wanted: Mapping[TopicPartition, PartitionFetch], *, by_id: bool) -> FetchRequest:
        """Returns the next request; the caller sets times and sizes.

        Args:
            wanted: all partitions to fetch.
            by_id: whether topics are named by id; all of `wanted` have one then.
        """
        if by_id != self._by_id:
            self.reset()
        if not self._id:
            self._requested = {}
        changed = {at: fetch for at, fetch in wanted.items() if self._requested.get(at) != fetch}
        gone = [(at, fetch) for at, fetch in self._requested.items() if at not in wanted]
        # A topic that was deleted and created again is another one to the broker: the old one is forgotten, too.
        gone += [(at, self._requested[at]) for at, fetch in changed.items() if self._replaced(at, fetch)]
        self._requested, self._by_id = dict(wanted), by_id
        topics: dict[str, _Topic] = {}
        for at, fetch in changed.items():
            topic = topics.get(at.topic)
            if topic is None:
                topic = topics[at.topic] = _Topic(topic=at.topic, topic_id=fetch.topic_id)
            topic.partitions.append(
                _Topic.Partition(
                    partition=at.partition,
                    current_leader_epoch=fetch.leader_epoch,
                    fetch_offset=fetch.offset,
                    partition_max_bytes=fetch.fetch_size,
                )
            )
        forgotten: dict[tuple[str, UUID], list[int]] = {}
        for at, fetch in gone:
            forgotten.setdefault((at.topic, fetch.topic_id), []).append(at.partition)
        return FetchRequest(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                _Forgotten(topic=name, topic_id=topic_id, partitions=tuple(partitions))
                for (name, topic_id), partitions in forgotten.items()
            ],
        )

    def handle_response(self, response: FetchResponse) -> list[tuple[TopicPartition, PartitionFetch, _Read]]:
        """Returns the results of the partitions that have any.

        A session-wide error, or a response that doesn't belong to the session, resets it.
        """
        if response.error_code:
            self.reset()
            return []
        if response.session_id != self._id:
            # The broker opens a session, or (0) has no room for one: then each request names all partitions.
            self._id, self._epoch = response.session_id, 0
        if self._id:
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        names = {fetch.topic_id: at.topic for at, fetch in self._requested.items()} if self._by_id else {}
        results = []
        for topic in response.responses:
            name = names.get(topic.topic_id) if self._by_id else topic.topic
            if name is None:
                continue
            for read in topic.partitions:
                at = TopicPartition(name, read.partition_index)
                fetch = self._requested.get(at)
                if fetch is not None:
                    results.append((at, fetch, read))
        return results

    def _replaced(self, at: TopicPartition, fetch: PartitionFetch) -> bool:
        old = self._requested.get(at)
        return old is not None and old.topic_id not in (NO_UUID, fetch.topic_id)
