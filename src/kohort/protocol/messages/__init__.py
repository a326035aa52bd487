"""All requests and responses, one file an API, and their index.

A file is imported on first use: a client that never sends CreateAcls never loads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

from kohort.protocol.message import Request, Response

__all__ = ["API_NAMES", "Api", "api", "apis"]


@dataclass(frozen=True, slots=True)
class Api:
    """An API: its key, its name, and its two messages (which have the same versions)."""

    key: int
    name: str
    request: type[Request]
    response: type[Response]

    @property
    def versions(self) -> range:
        """The versions that Kohort can encode and decode."""
        return self.request.__message__.versions

    @property
    def flexible_since(self) -> int:
        """The first version with compact lengths and tagged fields."""
        return self.request.__message__.flexible_since

    def request_header_version(self, version: int) -> int:
        """Version of the header before a request of this version."""
        return self.request.__message__.header_version(version)

    def response_header_version(self, version: int) -> int:
        """Version of the header before a response of this version."""
        return self.response.__message__.header_version(version)


API_NAMES: Final[dict[int, str]] = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    55: "DescribeQuorum",
    56: "AlterPartition",
    57: "UpdateFeatures",
    58: "Envelope",
    59: "FetchSnapshot",
    60: "DescribeCluster",
    61: "DescribeProducers",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    67: "AllocateProducerIds",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    70: "ControllerRegistration",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    73: "AssignReplicasToDirs",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    82: "UpdateRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
    93: "StreamsGroupTopologyDescriptionUpdate",
}
"""Kafka's name of each API, by its key."""

_KEYS: Final = {name.lower(): key for key, name in API_NAMES.items()}


@cache
def api(which: int | str) -> Api:
    """Returns the API with a key or a name (case-insensitive).

    Raises:
        KeyError: there is no such API.
    """
    key = _KEYS[which.lower()] if isinstance(which, str) else which
    name = API_NAMES[key]
    module = import_module(f"{__name__}.{module_name(name)}")
    return Api(key, name, getattr(module, f"{name}Request"), getattr(module, f"{name}Response"))


def apis() -> Iterator[Api]:
    """Yields all APIs, by key."""
    return map(api, API_NAMES)


def module_name(name: str) -> str:
    """The name of an API's module: "StreamsGroupHeartbeat" → "streams_group_heartbeat"."""
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")
