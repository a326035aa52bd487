"""What is not simulated: all that this package uses of the sources, in one place."""

from __future__ import annotations

from kohort.client.backoff import Backoff
from kohort.client.errors import (
    ClientError,
    CommitFailedError,
    ConnectionLostError,
    FencedError,
    NotDeliveredError,
    RequestTimeoutError,
    TransactionAbortableError,
)
from kohort.client.streams.events import Assigned, Event, Lost, Revoked, RolesChanged
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State as MemberState
from kohort.client.types import GroupMetadata, TopicPartition
from kohort.coordinator.shard import GroupSettings, GroupShard
from kohort.coordinator.step import Client, Step
from kohort.coordinator.streams.environment import StreamsEnvironment
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kohort.spark.jobs.epoch import EpochStatistics
from kohort.spark.program.committed_metadata import Fingerprint, committed_by
from kohort.spark.runtime.application_plan import ApplicationPlan
from kohort.spark.runtime.commit_errors import while_committing, while_sending
from kohort.spark.runtime.effects import Effect, Epoch, ForEpochs, ForTask
from kohort.spark.runtime.epoch_limit import LimitSettings
from kohort.spark.runtime.epoch_planning import SubtopologyInputs
from kohort.spark.runtime.epoch_states import EpochEffect, EpochEvent, EpochState
from kohort.spark.runtime.errors import RestartFromCommittedError
from kohort.spark.runtime.subtopology_plan import StoreOutput, SubtopologyPlan
from kohort.spark.runtime.task_manager import TaskManager
from kohort.spark.runtime.task_states import RESTING, TaskEffect, TaskEvent, TaskState
from kohort.spark.state import StateError
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

__all__ = [
    "RESTING",
    "ApplicationPlan",
    "Assigned",
    "Backoff",
    "Client",
    "ClientError",
    "CommitFailedError",
    "ConnectionLostError",
    "Effect",
    "Epoch",
    "EpochEffect",
    "EpochEvent",
    "EpochState",
    "EpochStatistics",
    "ErrorCode",
    "Event",
    "FencedError",
    "Fingerprint",
    "ForEpochs",
    "ForTask",
    "GroupMetadata",
    "GroupSettings",
    "GroupShard",
    "InternalTopic",
    "KafkaError",
    "LimitSettings",
    "Lost",
    "MemberSettings",
    "MemberState",
    "NotDeliveredError",
    "OffsetCommitRequest",
    "OffsetFetchRequest",
    "RequestTimeoutError",
    "RestartFromCommittedError",
    "Revoked",
    "Role",
    "RolesChanged",
    "StateError",
    "Step",
    "StoreOutput",
    "StreamsEnvironment",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse",
    "StreamsMembershipManager",
    "StreamsSettings",
    "Subtopology",
    "SubtopologyInputs",
    "SubtopologyPlan",
    "TaskEffect",
    "TaskEvent",
    "TaskId",
    "TaskManager",
    "TaskState",
    "TimingWheel",
    "TopicPartition",
    "Topology",
    "TransactionAbortableError",
    "TxnOffsetCommitRequest",
    "committed_by",
    "while_committing",
    "while_sending",
]  # fmt: skip
