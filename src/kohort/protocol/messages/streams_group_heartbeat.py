"""StreamsGroupHeartbeat: API 88."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, int64, string, struct, uint16


class KeyValue(Struct):
    """One topic setting or client tag."""

    key: str = string("Name of the topic setting or client tag.")
    value: str = string("What the setting or tag is set to.")


class TopicInfo(Struct):
    """An internal topic, as it should be created."""

    name: str = string("Name of the internal topic.")
    partitions: int = int32("Partitions wanted; 0 = no fixed number, as for any changelog.")
    replication_factor: int = int16("Replicas of each partition; 0 = the broker's default.")
    topic_configs: list[KeyValue] = array(KeyValue, "Settings to create the topic with.")


class Endpoint(Struct):
    """Host and port of an application instance."""

    host: str = string("Host name to connect to.")
    port: int = uint16("TCP port to connect to.")


class TaskOffset(Struct):
    """Changelog progress of one task."""

    subtopology_id: str = string("Subtopology of the task.")
    partition: int = int32("Partition number of the task.")
    offset: int = int64("Sum of the offsets over all of the task's changelog partitions.")


class TaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string("Subtopology the tasks run.")
    partitions: tuple[int, ...] = array(
        int32, "Partition number of each task; with the subtopology it makes the task's id."
    )


class Status(Struct):
    """A condition: bad topology, bad or missing topics, shutdown asked for, assignment delayed."""

    status_code: int = int8(
        "0 stale topology, 1 no sources, 2 partitions differ, 3 no internals, 4 stop, 5 wait, 6 tags lack (v1)."
    )
    status_detail: str = string("Explanation for people, such as the topics concerned.")


class TopicPartition(Struct):
    """A topic and some of its partitions."""

    topic: str = string("Name of the topic.")
    partitions: tuple[int, ...] = array(int32, "Partition numbers within the topic.")


class StreamsGroupHeartbeatRequest(Request, key=88, versions="0-1", flexible=0):
    """A Kafka Streams member joins, stays in or leaves its group and reports its topology and tasks.

    - v1 (Kafka 4.4): same layout; clients report task offsets only to brokers that know it
    """

    class Topology(Struct):
        class Subtopology(Struct):
            class CopartitionGroup(Struct):
                """One set of sources with equal partition counts, by position."""

                source_topics: tuple[int, ...] = array(int16, "Positions in the subtopology's SourceTopics.")
                source_topic_regex: tuple[int, ...] = array(int16, "Positions in the subtopology's SourceTopicRegex.")
                repartition_source_topics: tuple[int, ...] = array(
                    int16, "Positions in the subtopology's RepartitionSourceTopics."
                )

            subtopology_id: str = string("Name of the subtopology, the same on every member.")
            source_topics: tuple[str, ...] = array(string, "External topics the subtopology reads.")
            source_topic_regex: tuple[str, ...] = array(
                string, "Patterns for source topics that are not named outright."
            )
            state_changelog_topics: list[TopicInfo] = array(
                TopicInfo, "Topics that back up its state stores; the brokers create them."
            )
            repartition_sink_topics: tuple[str, ...] = array(string, "Names of repartition topics it writes.")
            repartition_source_topics: list[TopicInfo] = array(
                TopicInfo, "Repartition topics it reads; the brokers create them."
            )
            copartition_groups: list[CopartitionGroup] = array(
                CopartitionGroup, "Sets of sources that need equal partition counts."
            )

        epoch: int = int32("Version number of the topology, compared with the group's.")
        subtopologies: list[Subtopology] = array(Subtopology, "Parts of the topology that run independently.")

    group_id: str = string("The streams group, which is the application id.")
    member_id: str = string("Made up by the client, the same for as long as it runs.")
    member_epoch: int = int32("Member epoch; 0 = join, -1 = leave, -2 = a static member leaves for a while.")
    endpoint_information_epoch: int = int32("Epoch of the endpoint data the member has; tells if it needs newer.")
    instance_id: str | None = string("Static member's name; null = dynamic, or as before.", nullable=True)
    rack_id: str | None = string("Rack the member is in; null = none, or as before.", nullable=True)
    rebalance_timeout_ms: int = int32(
        "How long the member may take to give up tasks, in ms; -1 = as before.", default=-1
    )
    topology: Topology | None = struct(
        Topology, "The application's topology; sent on joining, else null.", nullable=True
    )
    active_tasks: list[TaskIds] | None = array(TaskIds, "Active tasks the member has; null = as before.", nullable=True)
    standby_tasks: list[TaskIds] | None = array(
        TaskIds, "Standby tasks the member has; null = as before.", nullable=True
    )
    warmup_tasks: list[TaskIds] | None = array(
        TaskIds, "Warm-up tasks the member has; null = as before.", nullable=True
    )
    process_id: str | None = string(
        "Same for all members in one process, which share state; null = as before.", nullable=True
    )
    user_endpoint: Endpoint | None = struct(
        Endpoint, "Where the application answers interactive queries; null = none, or as before.", nullable=True
    )
    client_tags: list[KeyValue] | None = array(
        KeyValue, "Tags that spread standbys over racks or zones; null = as before.", nullable=True
    )
    task_offsets: list[TaskOffset] | None = array(
        TaskOffset, "How far each task's state has been restored; null = as before.", nullable=True
    )
    task_end_offsets: list[TaskOffset] | None = array(
        TaskOffset, "Ends of each task's changelogs, to compute lag; null = as before.", nullable=True
    )
    shutdown_application: bool = boolean("True = make every member of the group shut down.")


class StreamsGroupHeartbeatResponse(Response, key=88, versions="0-1", flexible=0):
    """Tells a Kafka Streams member its epoch, its tasks and what is wrong with the group.

    - v1 (Kafka 4.4): AcceptableRecoveryLag is wide; TopologyDescriptionRequired (KIP-1331); status 6
    """

    class PartitionsByUserEndpoint(Struct):
        user_endpoint: Endpoint = struct(Endpoint, "Where the instance answers interactive queries.")
        active_partitions: list[TopicPartition] = array(
            TopicPartition, "Topic partitions that the instance's active tasks cover."
        )
        standby_partitions: list[TopicPartition] = array(
            TopicPartition, "Topic partitions that the instance's standby tasks cover."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True)
    member_id: str = string("The id the member chose, echoed.")
    member_epoch: int = int32("Member epoch to send from now on.")
    heartbeat_interval_ms: int = int32("How long to wait before the next heartbeat, in ms.")
    acceptable_recovery_lag_v0: int = int32(
        "Most offsets a warm-up task may lag and still count as ready.",
        until=0,
        name="AcceptableRecoveryLag",
        ignorable=True,
    )
    task_offset_interval_ms: int = int32("How often the member should report its task offsets, in ms.")
    acceptable_recovery_lag: int = int64(
        "Most offsets a warm-up task may lag and still count as ready; -1 = the broker doesn't say.",
        since=1,
        default=-1,
        ignorable=True,
    )
    status: list[Status] | None = array(
        Status, "Conditions the application should know about; null or empty = none.", nullable=True, default=[]
    )
    active_tasks: list[TaskIds] | None = array(TaskIds, "Active tasks to run; null = as before.", nullable=True)
    standby_tasks: list[TaskIds] | None = array(TaskIds, "Standby tasks to run; null = as before.", nullable=True)
    warmup_tasks: list[TaskIds] | None = array(TaskIds, "Warm-up tasks to run; null = as before.", nullable=True)
    topology_description_required: bool = boolean("True = the broker wants the topology described.", since=1)
    endpoint_information_epoch: int = int32("Epoch of the group's endpoint data, to be echoed in heartbeats.")
    partitions_by_user_endpoint: list[PartitionsByUserEndpoint] | None = array(
        PartitionsByUserEndpoint, "Which instance holds which partitions, for queries; null = as before.", nullable=True
    )
