"""Members of streams and of consumer groups, as few bytes of Python as can be: they take what they are assigned."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod

from benchmarks.broker.members import NOT_YET, check
from benchmarks.broker.wire import Connection, frame
from kohort.protocol.messages import consumer_group_heartbeat, streams_group_heartbeat
from kohort.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kohort.protocol.messages.headers import ResponseHeader
from kohort.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

PATIENT_MS = 300_000
INTERVAL_MS = 5_000
"""What members of consumer groups are told by default; less where partitions move, or did so a short while ago."""
Topology = StreamsGroupHeartbeatRequest.Topology
Owned = ConsumerGroupHeartbeatRequest.TopicPartition


class ModernMember(ABC):
    """A member of a group whose coordinator assigns.

    Attributes:
        settled: it was given something, has all of it, and has said so.
    """

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self.connection = connection
        self.group = group
        self.topic = topic
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.settled = False

    @abstractmethod
    async def beat(self) -> None:
        """A heartbeat that says everything: it joins at first, and takes what it is given."""

    @abstractmethod
    def at_rest(self) -> bytes:
        """The request, as a frame, of a member that has nothing new to say."""

    @abstractmethod
    def check_at_rest(self, answer: bytes) -> None:
        """RuntimeError if the answer to that has an error, or changes anything."""

    def took(self, error: int, message: str | None, epoch: int, unchanged: bool) -> bool:
        """Note an answer; whether it counts. A member that gets something has to send once more that it has it."""
        if error in NOT_YET:
            return False
        check(error, f"heartbeat ({message})")
        self.settled = unchanged and epoch == self.epoch
        self.epoch = epoch
        return True


class StreamsMember(ModernMember):
    """One of a streams group with one subtopology without state."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        super().__init__(connection, group, topic)
        self.endpoint_epoch = -1
        self.tasks: list[streams_group_heartbeat.TaskIds] = []

    async def beat(self) -> None:
        """As of the base class."""
        joining = self.epoch == 0
        subtopology = Topology.Subtopology(subtopology_id="0", source_topics=(self.topic,))
        answer = await self.connection.call(
            StreamsGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id, member_epoch=self.epoch,
                endpoint_information_epoch=self.endpoint_epoch, rebalance_timeout_ms=PATIENT_MS,
                topology=Topology(epoch=0, subtopologies=[subtopology]) if joining else None,
                process_id=self.member_id if joining else None,
                active_tasks=self.tasks, standby_tasks=[], warmup_tasks=[],
                client_tags=[] if joining else None,
            ), 0, StreamsGroupHeartbeatResponse,
        )  # fmt: skip
        unchanged = not answer.status and answer.active_tasks is None and bool(self.tasks)
        if self.took(answer.error_code, answer.error_message, answer.member_epoch, unchanged):
            self.endpoint_epoch = answer.endpoint_information_epoch
            if answer.active_tasks is not None:
                self.tasks = answer.active_tasks

    def at_rest(self) -> bytes:
        """As of the base class."""
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
        )
        return frame(request, 0)

    def check_at_rest(self, answer: bytes) -> None:
        """As of the base class."""
        _, start = ResponseHeader.read(answer, 0, 1)
        response, _ = StreamsGroupHeartbeatResponse.read(answer, start, 0)
        check(response.error_code, "heartbeat")
        if response.status or response.active_tasks is not None:
            raise RuntimeError(f"the coordinator sends a settled member changes: {response}")


class ConsumerMember(ModernMember):
    """One of a consumer group that is subscribed to one topic."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        super().__init__(connection, group, topic)
        self.partitions: list[consumer_group_heartbeat.TopicPartitions] = []

    async def beat(self) -> None:
        """As of the base class."""
        answer = await self.connection.call(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id, member_epoch=self.epoch,
                rebalance_timeout_ms=PATIENT_MS, subscribed_topic_names=(self.topic,),
                topic_partitions=[Owned(topic_id=of.topic_id, partitions=of.partitions) for of in self.partitions],
            ), 1, ConsumerGroupHeartbeatResponse,
        )  # fmt: skip
        # One that says everything is answered with everything.
        assigned = answer.assignment.topic_partitions if answer.assignment else self.partitions
        unchanged = assigned == self.partitions != [] and answer.heartbeat_interval_ms >= INTERVAL_MS
        if self.took(answer.error_code, answer.error_message, answer.member_epoch, unchanged):
            self.partitions = assigned

    def at_rest(self) -> bytes:
        """As of the base class."""
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.member_id, member_epoch=self.epoch)
        return frame(request, 1)

    def check_at_rest(self, answer: bytes) -> None:
        """As of the base class."""
        _, start = ResponseHeader.read(answer, 0, 1)
        response, _ = ConsumerGroupHeartbeatResponse.read(answer, start, 1)
        check(response.error_code, "heartbeat")
        if response.assignment is not None:
            raise RuntimeError(f"the coordinator sends a settled member changes: {response}")


KINDS: dict[str, type[ModernMember]] = {"streams": StreamsMember, "consumer": ConsumerMember}
