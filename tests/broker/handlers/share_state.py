"""Requests to the share coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from kohort.protocol.message import Request
from kohort.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kohort.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kohort.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from kohort.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kohort.protocol.messages.write_share_group_state import WriteShareGroupStateRequest


def initialize(topic_id: UUID, *partitions: int, group_id: str = "g", start_offset: int = -1) -> Request:
    topic = InitializeShareGroupStateRequest.Topic
    places = [topic.Partition(partition=each, state_epoch=1, start_offset=start_offset) for each in partitions]
    return InitializeShareGroupStateRequest(group_id=group_id, topics=[topic(topic_id=topic_id, partitions=places)])


def read(topic_id: UUID, *partitions: int, group_id: str = "g", leader_epoch: int = 0) -> Request:
    topic = ReadShareGroupStateRequest.Topic
    places = [topic.Partition(partition=each, leader_epoch=leader_epoch) for each in partitions]
    return ReadShareGroupStateRequest(group_id=group_id, topics=[topic(topic_id=topic_id, partitions=places)])


def write(topic_id: UUID, *partitions: int, group_id: str = "g", start_offset: int = 3) -> Request:
    topic = WriteShareGroupStateRequest.Topic
    batch = topic.Partition.StateBatch(first_offset=3, last_offset=5, delivery_state=2, delivery_count=1)
    places = [
        topic.Partition(
            partition=each, state_epoch=1, leader_epoch=0, start_offset=start_offset, delivery_complete_count=3,
            state_batches=[batch],
        )
        for each in partitions
    ]  # fmt: skip
    return WriteShareGroupStateRequest(group_id=group_id, topics=[topic(topic_id=topic_id, partitions=places)])


def summary(topic_id: UUID, *partitions: int, group_id: str = "g") -> Request:
    topic = ReadShareGroupStateSummaryRequest.Topic
    places = [topic.Partition(partition=each, leader_epoch=0) for each in partitions]
    return ReadShareGroupStateSummaryRequest(group_id=group_id, topics=[topic(topic_id=topic_id, partitions=places)])


def delete(topic_id: UUID, *partitions: int, group_id: str = "g") -> Request:
    topic = DeleteShareGroupStateRequest.Topic
    places = [topic.Partition(partition=each) for each in partitions]
    return DeleteShareGroupStateRequest(group_id=group_id, topics=[topic(topic_id=topic_id, partitions=places)])


Make = Callable[..., Request]
ALL: list[Make] = [initialize, read, write, summary, delete]
every_api = pytest.mark.parametrize("make", ALL)


def codes(response: Any) -> list[tuple[int, int]]:
    return [(part.partition, part.error_code) for result in response.results for part in result.partitions]
