"""ApiVersions: API 18."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Request, key=18, versions="0-5", flexible=3):
    """A client's first request: which requests and versions does this broker understand?

    - v1: the response has a throttle time
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: flexible; ClientSoftwareName and ClientSoftwareVersion
    - v4: no change on the wire: supported features may have a minimum version of 0
    - v5 (Kafka 4.4): ClusterId and NodeId, by which a client notices that it reached another node (KIP-1242)
    """

    client_software_name: str = string("Name of the client library, for the broker's metrics.", since=3, ignorable=True)
    client_software_version: str = string(
        "Version of the client library, for the broker's metrics.", since=3, ignorable=True
    )
    cluster_id: str | None = string(
        "Cluster that the client means to reach; null = any.", since=5, nullable=True, default=None, ignorable=True
    )
    node_id: int = int32("Node that the client means to reach; -1 = any.", since=5, default=-1, ignorable=True)


class ApiVersionsResponse(Response, key=18, versions="0-5", flexible=3):
    """The requests and versions that the broker understands, and the cluster's features.

    - v1: ThrottleTimeMs
    - v2: no change on the wire: when over quota, the broker answers first and throttles after
    - v3: flexible body, but always response header 0; tagged features and ZkMigrationReady
    - v4: no change on the wire: features with a minimum version of 0 are no longer left out
    - v5 (Kafka 4.4): same layout; may answer REBOOTSTRAP_REQUIRED
    """

    class ApiKey(Struct):
        api_key: int = int16("Number of the request type, such as 0 for Produce.")
        min_version: int = int16("Oldest version of the request that is understood.")
        max_version: int = int16("Newest version of the request that is understood.")

    class SupportedFeature(Struct):
        """Levels of one feature that the broker can run."""

        name: str = string("Name of the feature, such as metadata.version.")
        min_version: int = int16("Lowest level of it this broker can run.")
        max_version: int = int16("Highest level of it this broker can run.")

    class FinalizedFeature(Struct):
        """Level of one feature across the cluster."""

        name: str = string("Name of the feature, such as metadata.version.")
        max_version_level: int = int16("Level in force, the highest that may be used.")
        min_version_level: int = int16("Lowest level in force; with KRaft the same as MaxVersionLevel.")

    error_code: int = int16("0, or the error that failed the whole request.")
    api_keys: list[ApiKey] = array(ApiKey, "The requests the broker understands.")
    throttle_time_ms: int = int32(
        "How long the broker held the request back for a quota, in ms.", since=1, ignorable=True
    )
    supported_features: list[SupportedFeature] = array(
        SupportedFeature,
        "Features this broker could run; before version 4, none that begin at 0.",
        since=3,
        ignorable=True,
        tag=0,
    )
    finalized_features_epoch: int = int64(
        "Grows as FinalizedFeatures changes; -1 if the broker knows none.", since=3, default=-1, ignorable=True, tag=1
    )
    finalized_features: list[FinalizedFeature] = array(
        FinalizedFeature,
        "Feature levels the cluster runs; to be ignored while the epoch is -1.",
        since=3,
        ignorable=True,
        tag=2,
    )
    zk_migration_ready: bool = boolean(
        "A KRaft controller is configured to migrate a cluster from ZooKeeper.", since=3, ignorable=True, tag=3
    )
