"""StreamsGroupDescribe: API 89."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.messages.streams_group_topology_description_update import TopologyDescription
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, int64, string, struct, uint16


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


class Assignment(Struct):
    """Tasks of one member, by kind."""

    active_tasks: list[TaskIds] = array(TaskIds, "Tasks the member processes.")
    standby_tasks: list[TaskIds] = array(TaskIds, "Tasks whose state it keeps as a replica.")
    warmup_tasks: list[TaskIds] = array(TaskIds, "Tasks whose state it restores before taking them over.")


class KeyValue(Struct):
    """One topic setting or client tag."""

    key: str = string("Name of the topic setting or client tag.")
    value: str = string("What the setting or tag is set to.")


class TopicInfo(Struct):
    """An internal topic of the application."""

    name: str = string("Name of the internal topic.")
    partitions: int = int32("Partition count of the internal topic; 0 = no fixed number.")
    replication_factor: int = int16("Replicas of each partition; 0 = the broker's default.")
    topic_configs: list[KeyValue] = array(KeyValue, "Settings the application asked for on the topic.")


class StreamsGroupDescribeRequest(Request, key=89, versions="0-1", flexible=0):
    """Asks a group coordinator for the topology, members and tasks of streams groups.

    - v1 (Kafka 4.4): IncludeTopologyDescription (KIP-1331)
    """

    group_ids: tuple[str, ...] = array(string, "Streams groups to look up.")
    include_authorized_operations: bool = boolean("True = also say what the caller may do with each group.")
    include_topology_description: bool = boolean(
        "True = also how the topology's nodes are connected, if a member has described that.", since=1
    )


class StreamsGroupDescribeResponse(Response, key=89, versions="0-1", flexible=0):
    """Topology, members, epochs and task assignments of streams groups.

    - v1 (Kafka 4.4): TopologyDescription with its status (KIP-1331), and AssignorName (KIP-1357)
    """

    class Group(Struct):
        class Topology(Struct):
            class Subtopology(Struct):
                subtopology_id: str = string("Name of the subtopology within the application.")
                source_topics: tuple[str, ...] = array(string, "External topics it reads.")
                repartition_sink_topics: tuple[str, ...] = array(string, "Names of repartition topics it writes.")
                state_changelog_topics: list[TopicInfo] = array(TopicInfo, "Topics that back up its state stores.")
                repartition_source_topics: list[TopicInfo] = array(TopicInfo, "Repartition topics it reads.")

            epoch: int = int32("Version number of the group's topology.")
            subtopologies: list[Subtopology] | None = array(
                Subtopology, "Its parts with topics resolved; null while topics are missing or unfit.", nullable=True
            )

        class Member(Struct):
            member_id: str = string("The id the member chose for itself.")
            member_epoch: int = int32("Member epoch; the group epoch once the member has caught up.")
            instance_id: str | None = string("Static member's name; null = dynamic.", nullable=True)
            rack_id: str | None = string("Rack the member is in; null = none given.", nullable=True)
            client_id: str = string("The member's client.id setting.")
            client_host: str = string("Address the member connects from.")
            topology_epoch: int = int32("Epoch of the topology the member itself runs.")
            process_id: str = string("Same for all members in one process, which share state.")
            user_endpoint: Endpoint | None = struct(
                Endpoint, "Where the application answers interactive queries; null = nowhere.", nullable=True
            )
            client_tags: list[KeyValue] = array(KeyValue, "Tags that spread standbys over racks or zones.")
            task_offsets: list[TaskOffset] = array(TaskOffset, "How far each task's state has been restored.")
            task_end_offsets: list[TaskOffset] = array(TaskOffset, "Ends of each task's changelogs, to compute lag.")
            assignment: Assignment = struct(Assignment, "Tasks the member has now.")
            target_assignment: Assignment = struct(Assignment, "Tasks the member is moving towards.")
            is_classic: bool = boolean("True if the member still speaks the classic group protocol.")

        error_code: int = int16("0, or why this group failed.")
        error_message: str | None = string("Why this group failed, for people; null without an error.", nullable=True)
        group_id: str = string("The streams group, which is the application id.")
        group_state: str = string("As in Stable or Empty; blank after an error.")
        group_epoch: int = int32("Group epoch; rises when members, topology or topics change.")
        assignment_epoch: int = int32("Group epoch the target assignment was computed for.")
        topology: Topology | None = struct(Topology, "The topology the group runs; null after an error.", nullable=True)
        members: list[Member] = array(Member, "Who is in the group.")
        authorized_operations: int = int32(
            "What the caller may do, bit n = operation n; -2147483648 = not asked.", default=-2147483648
        )
        topology_description: TopologyDescription | None = struct(
            TopologyDescription, "How nodes are connected; null unless the status is 3.", since=1, nullable=True
        )
        topology_description_status: int = int8(
            "0 = not asked for, 1 = no member has described it, 2 = it can't be read, 3 = there it is.", since=1
        )
        assignor_name: str | None = string(
            "The assignor that the next assignment is made by; null after an error.",
            since=1,
            nullable=True,
            default=None,
            ignorable=True,
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    groups: list[Group] = array(Group, "One entry for each group asked about.")
