"""AssignReplicasToDirs: API 73."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, uuid_


class AssignReplicasToDirsRequest(Request, key=73, versions="0", flexible=0):
    """A broker tells the controller in which log directory each of its replicas lies."""

    class Directory(Struct):
        class Topic(Struct):
            class Partition(Struct):
                """One partition whose replica lies in the directory."""

                partition_index: int = int32("The partition's number within its topic.")

            topic_id: UUID = uuid_("The topic's id.")
            partitions: list[Partition] = array(Partition, "The topic's partitions whose replica lies here.")

        id: UUID = uuid_("The log directory's id.")
        topics: list[Topic] = array(Topic, "Topics with replicas in this directory.")

    broker_id: int = int32("Id of the broker that holds the replicas.")
    broker_epoch: int = int64("That broker's registration epoch; a stale one is refused.", default=-1)
    directories: list[Directory] = array(Directory, "The broker's log directories and the replicas in them.")


class AssignReplicasToDirsResponse(Response, key=73, versions="0", flexible=0):
    """Tells, replica by replica, whether the controller noted the log directory."""

    class Directory(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: int = int32("The partition's number within its topic.")
                error_code: int = int16("0, or why this partition failed.")

            topic_id: UUID = uuid_("The topic's id.")
            partitions: list[Partition] = array(Partition, "Results for the topic's partitions.")

        id: UUID = uuid_("The log directory's id.")
        topics: list[Topic] = array(Topic, "Results for the topics of the directory.")

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    directories: list[Directory] = array(Directory, "Results, by log directory.")
