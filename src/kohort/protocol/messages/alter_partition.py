"""AlterPartition: API 56."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, uuid_


class AlterPartitionRequest(Request, key=56, versions="2-3", flexible=2):
    """A partition's leader asks the controller to change the set of in-sync replicas.

    - v2: topics by id in place of the name; the oldest version since Kafka 4.0
    - v3: NewIsrWithEpochs in place of NewIsr
    """

    class Topic(Struct):
        class Partition(Struct):
            """New in-sync replicas of one partition."""

            class NewIsrWithEpoch(Struct):
                """One in-sync broker and its registration."""

                broker_id: int = int32("Node id of the in-sync broker.")
                broker_epoch: int = int64("Its registration as the leader knows it; -1 skips the check.", default=-1)

            partition_index: int = int32("The partition's number within its topic.")
            leader_epoch: int = int32("Leader epoch the sender leads in; a stale one is refused.")
            new_isr: tuple[int, ...] = array(int32, "Broker ids that are to be in sync, the leader included.", until=2)
            new_isr_with_epochs: list[NewIsrWithEpoch] = array(
                NewIsrWithEpoch, "Brokers that are to be in sync, the leader included.", since=3
            )
            leader_recovery_state: int = int8(
                "0 = recovered, 1 = the leader was elected uncleanly and is still recovering."
            )
            partition_epoch: int = int32("Partition epoch the change builds on; a stale one is refused.")

        topic_id: UUID = uuid_("The topic's id.", ignorable=True)
        partitions: list[Partition] = array(Partition, "Partitions of the topic with their new in-sync replicas.")

    broker_id: int = int32("Node id of the broker that asks, leader of the partitions.")
    broker_epoch: int = int64("Epoch the broker got when it registered; -1 if unknown.", default=-1)
    topics: list[Topic] = array(Topic, "Changes by topic.")


class AlterPartitionResponse(Response, key=56, versions="2-3", flexible=2):
    """The controller's new state of each partition, or why it refused the change.

    - v2: topics by id; new errors INELIGIBLE_REPLICA, NEW_LEADER_ELECTED and UNKNOWN_TOPIC_ID
    """

    class Topic(Struct):
        class Partition(Struct):
            """New state of one partition, or the refusal."""

            partition_index: int = int32("The partition's number within its topic.")
            error_code: int = int16("0, or why this partition failed.")
            leader_id: int = int32("Broker that leads the partition after the change.")
            leader_epoch: int = int32("Leader epoch after the change.")
            isr: tuple[int, ...] = array(int32, "Broker ids in sync after the change.")
            leader_recovery_state: int = int8(
                "0 = recovered, 1 = the leader was elected uncleanly and is still recovering.", ignorable=True
            )
            partition_epoch: int = int32("Partition epoch after the change; the next change builds on it.")

        topic_id: UUID = uuid_("The topic's id.", ignorable=True)
        partitions: list[Partition] = array(Partition, "One outcome per partition of the topic.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    topics: list[Topic] = array(Topic, "Outcomes by topic.")
