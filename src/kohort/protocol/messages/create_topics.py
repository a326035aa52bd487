"""CreateTopics: API 19."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string, uuid_


class CreateTopicsRequest(Request, key=19, versions="2-7", flexible=5):
    """Creates topics, or only checks whether they could be created.

    - v3: no change on the wire: when over quota, the broker answers first and throttles after
    - v4: no change on the wire: partitions and replicas may be -1, for the broker's defaults
    - v5: flexible; the response has the topics' size and configs
    - v6: no change on the wire: THROTTLING_QUOTA_EXCEEDED may come back
    - v7: the response has topic ids
    """

    class Topic(Struct):
        class Assignment(Struct):
            partition_index: int = int32("The partition's number within its topic.")
            broker_ids: tuple[int, ...] = array(int32, "Node ids of its replicas, the preferred leader first.")

        class Config(Struct):
            name: str = string("Name of the setting, such as retention.ms.")
            value: str | None = string("Value of the setting as text.", nullable=True, default="")

        name: str = string("Name of the topic to create.")
        num_partitions: int = int32("How many partitions; -1 for the default, or when Assignments says.")
        replication_factor: int = int16(
            "How many replicas per partition; -1 for the default, or when Assignments says."
        )
        assignments: list[Assignment] = array(
            Assignment, "Which brokers get which partition; empty to let the controller choose."
        )
        configs: list[Config] = array(Config, "Settings that differ from the defaults.")

    topics: list[Topic] = array(Topic, "What to create.")
    timeout_ms: int = int32("How long the creation may take, in ms.", default=60000)
    validate_only: bool = boolean("Only check, and create nothing.")


class CreateTopicsResponse(Response, key=19, versions="2-7", flexible=5):
    """Tells for each topic whether it was created, and how it came out.

    - v3: no change on the wire: when over quota, the broker answers first and throttles after
    - v5: flexible; NumPartitions, ReplicationFactor, Configs, tagged TopicConfigErrorCode
    - v6: no change on the wire: THROTTLING_QUOTA_EXCEEDED may come back
    - v7: TopicId
    """

    class Topic(Struct):
        class Config(Struct):
            name: str = string("Name of the setting, such as retention.ms.")
            value: str | None = string(
                "Value of the setting as text; null if it is sensitive.", nullable=True, default=""
            )
            read_only: bool = boolean("The setting can't be changed while the broker runs.")
            config_source: int = int8(
                "1 topic, 2 broker, 3 all brokers, 4 file, 5 default, 6 logger, 7 metrics, 8 group.",
                default=-1,
                ignorable=True,
            )
            is_sensitive: bool = boolean("The value is a secret and isn't shown.")

        name: str = string("Name of the topic that was to be created.")
        topic_id: UUID = uuid_("The topic's id; zero if none was created.", since=7, ignorable=True)
        error_code: int = int16("0, or why this topic failed.")
        error_message: str | None = string(
            "Why this topic failed, for people; null without an error.", nullable=True, default="", ignorable=True
        )
        topic_config_error_code: int = int16(
            "0, or why size and configs are withheld (caller may not read configs).", since=5, ignorable=True, tag=0
        )
        num_partitions: int = int32(
            "How many partitions it has; -1 if withheld or not created.", since=5, default=-1, ignorable=True
        )
        replication_factor: int = int16(
            "How many replicas a partition has; -1 if withheld or not created.", since=5, default=-1, ignorable=True
        )
        configs: list[Config] | None = array(
            Config,
            "All settings in force for the topic; null or empty if withheld.",
            since=5,
            nullable=True,
            default=[],
            ignorable=True,
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.", ignorable=True)
    topics: list[Topic] = array(Topic, "The outcomes, by topic.")
