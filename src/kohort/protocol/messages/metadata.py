"""Metadata: API 3."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, string, uuid_


class MetadataRequest(Request, key=3, versions="0-13", flexible=9):
    """Asks any broker for the cluster's brokers, and for topics with their partitions and leaders.

    - v1: Topics null means all and empty means none (in 0, empty means all)
    - v2: the response has the cluster id
    - v3: the response has a throttle time
    - v4: AllowAutoTopicCreation
    - v5: the response lists offline replicas
    - v6: no change on the wire: when over quota, the broker answers first and throttles after
    - v7: the response has leader epochs
    - v8: authorized operations may be asked for
    - v9: flexible
    - v10: TopicId and a null Name are possible on the wire, but brokers don't serve them yet
    - v11: IncludeClusterAuthorizedOperations is gone (DescribeCluster has it)
    - v12: no change on the wire: topics may be asked for by id
    - v13: the response has a top-level error
    """

    class Topic(Struct):
        """One topic to look up, by name or by id."""

        topic_id: UUID = uuid_("The topic's id.", since=10, ignorable=True)
        name: str | None = string(
            "Name of the topic to look up; null when asking by id.", nullable_since=10, default=""
        )

    topics: list[Topic] | None = array(
        Topic,
        "Topics to tell about; null for all, empty for none (in version 0: for all).",
        nullable_since=1,
        default=[],
    )
    allow_auto_topic_creation: bool = boolean(
        "Missing topics may be created, if the broker's config permits that.", since=4, default=True
    )
    include_cluster_authorized_operations: bool = boolean(
        "Also tell what the caller may do with the cluster.", since=8, until=10
    )
    include_topic_authorized_operations: bool = boolean("Also tell what the caller may do with each topic.", since=8)


class MetadataResponse(Response, key=3, versions="0-13", flexible=9):
    """The brokers and where to reach them, and each topic's partitions, leaders and replicas.

    - v1: Rack, ControllerId and IsInternal
    - v2: ClusterId
    - v3: ThrottleTimeMs
    - v5: OfflineReplicas
    - v6: no change on the wire: when over quota, the broker answers first and throttles after
    - v7: LeaderEpoch
    - v8: authorized operations of the topics and the cluster
    - v9: flexible
    - v10: TopicId
    - v11: ClusterAuthorizedOperations is gone (DescribeCluster has it)
    - v12: Name is null for an unknown id
    - v13: top-level ErrorCode, such as REBOOTSTRAP_REQUIRED
    """

    class Broker(Struct):
        node_id: int = int32("Node id of the broker.")
        host: str = string("Host that clients connect to.")
        port: int = int32("TCP port that clients connect to.")
        rack: str | None = string(
            "Rack the broker is in; null if none is configured.", since=1, nullable=True, ignorable=True
        )

    class Topic(Struct):
        class Partition(Struct):
            error_code: int = int16("0, or why this partition failed.")
            partition_index: int = int32("The partition's number within its topic.")
            leader_id: int = int32("Node id of the partition's leader; -1 while it has none.")
            leader_epoch: int = int32(
                "Grows with each change of leader; -1 if not known.", since=7, default=-1, ignorable=True
            )
            replica_nodes: tuple[int, ...] = array(int32, "Node ids of the replicas, the preferred leader first.")
            isr_nodes: tuple[int, ...] = array(int32, "Node ids of the in-sync replicas, the leader among them.")
            offline_replicas: tuple[int, ...] = array(
                int32, "Node ids of replicas whose broker or log directory is down.", since=5, ignorable=True
            )

        error_code: int = int16("0, or why this topic failed.")
        name: str | None = string(
            "Name of the topic; null if an id asked for is unknown.", nullable_since=12, default=""
        )
        topic_id: UUID = uuid_("The topic's id; zero if a name asked for is unknown.", since=10, ignorable=True)
        is_internal: bool = boolean(
            "Kafka keeps its own state here, as in __consumer_offsets.", since=1, ignorable=True
        )
        partitions: list[Partition] = array(Partition, "The topic's partitions, in any order.")
        topic_authorized_operations: int = int32(
            "Bit n set: the caller may do ACL operation n; -2147483648 if not asked for.", since=8, default=-2147483648
        )

    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=3, ignorable=True
    )
    brokers: list[Broker] = array(Broker, "The live brokers.")
    cluster_id: str | None = string(
        "The cluster's id; null if the broker doesn't know it.", since=2, nullable=True, ignorable=True
    )
    controller_id: int = int32(
        "Broker to send controller requests to (any live one with KRaft); -1 if none.",
        since=1,
        default=-1,
        ignorable=True,
    )
    topics: list[Topic] = array(Topic, "The topics found or asked for.")
    cluster_authorized_operations: int = int32(
        "Bit n set: the caller may do ACL operation n; -2147483648 if not asked for.",
        since=8,
        until=10,
        default=-2147483648,
    )
    error_code: int = int16("0, or the error that failed the whole request.", since=13, ignorable=True)
