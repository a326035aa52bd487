"""Records of `__cluster_metadata`: topics, partitions, configurations, features, producer ids, quotas, ACLs, users.

Their values are framed in another way than those of coordinators: a frame version (1), the record's type and its
version, each an unsigned varint, and then the fields. There are no keys. Source: KIP-631.
"""

from __future__ import annotations

from typing import Final, get_args
from uuid import UUID

from kohort.protocol.errors import ProtocolError
from kohort.protocol.message import Data
from kohort.protocol.primitives import read_uvarint, uvarint
from kohort.protocol.schema import Struct, array, boolean, bytes_, float64, int8, int16, int32, int64, string, uuid_

__all__ = [
    "METADATA_TOPIC", "AccessControlEntryRecord", "ClientQuotaRecord", "ConfigRecord", "DelegationTokenRecord",
    "FeatureLevelRecord", "MetadataRecord", "PartitionRecord", "ProducerIdsRecord", "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord", "RemoveTopicRecord", "RemoveUserScramCredentialRecord", "TopicRecord",
    "UserScramCredentialRecord", "decode_metadata", "encode_metadata",
]  # fmt: skip

METADATA_TOPIC: Final = "__cluster_metadata"
_FRAME_VERSION: Final = 1


class TopicRecord(Data, key=2, versions="0", flexible=0):
    """A topic was created."""

    name: str = string("Name of the topic.")
    topic_id: UUID = uuid_("The id that it keeps until it is deleted.")


class PartitionRecord(Data, key=3, versions="0-2", flexible=0):
    """A partition was created.

    - v1: Directories (KIP-858)
    - v2: EligibleLeaderReplicas and LastKnownElr (KIP-966)
    """

    partition_id: int = int32("The partition's number within its topic.", default=-1)
    topic_id: UUID = uuid_("Id of its topic.")
    replicas: tuple[int, ...] = array(int32, "Nodes that have a copy, the preferred leader first.")
    isr: tuple[int, ...] = array(int32, "Those of them that are in sync.")
    removing_replicas: tuple[int, ...] = array(int32, "Copies that are going away.")
    adding_replicas: tuple[int, ...] = array(int32, "Copies that are being made.")
    leader: int = int32("Node that leads the partition; -1 = none.", default=-1)
    leader_recovery_state: int = int8("1 while it recovers from an unclean election.", tag=0)
    leader_epoch: int = int32("Epoch of the leader.", default=-1)
    partition_epoch: int = int32("Rises with every change of the partition.", default=-1)
    directories: tuple[UUID, ...] = array(uuid_, "Log directory of each copy.", since=1)
    eligible_leader_replicas: tuple[int, ...] | None = array(
        int32, "Copies out of sync that may still be elected.", since=2, nullable=True, default=None, tag=1
    )
    last_known_elr: tuple[int, ...] | None = array(
        int32, "Those that were eligible last.", since=2, nullable=True, default=None, tag=2
    )


class ConfigRecord(Data, key=4, versions="0", flexible=0):
    """A configuration key of a resource was set or deleted."""

    resource_type: int = int8("2 topic, 4 broker, 16 client metrics, 32 group.")
    resource_name: str = string("Name of the resource.")
    name: str = string("The key.")
    value: str | None = string("Its value; null = back to the default.", nullable=True)


class RemoveTopicRecord(Data, key=9, versions="0", flexible=0):
    """A topic was deleted, with its partitions."""

    topic_id: UUID = uuid_("Id of the topic.")


class DelegationTokenRecord(Data, key=10, versions="0", flexible=0):
    """A delegation token was made or renewed; its secret isn't here."""

    owner: str = string("Whom it stands for, as User:alice.")
    requester: str = string("Who asked for it.")
    renewers: tuple[str, ...] = array(string, "Who may renew it beside its owner.")
    issue_timestamp: int = int64("When it was made, in ms since the epoch.")
    max_timestamp: int = int64("Until when it can be renewed, in ms since the epoch.")
    expiration_timestamp: int = int64("When it expires unless it is renewed, in ms since the epoch.")
    token_id: str = string("Its id.")


class UserScramCredentialRecord(Data, key=11, versions="0", flexible=0):
    """A user got a SCRAM credential, or another one."""

    name: str = string("The user.")
    mechanism: int = int8("1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512.")
    salt: bytes = bytes_("Random bytes mixed into the password.")
    stored_key: bytes = bytes_("What a client's proof is checked by.")
    server_key: bytes = bytes_("What the server proves itself by.")
    iterations: int = int32("How often the hash was applied to salt the password.")


class FeatureLevelRecord(Data, key=12, versions="0", flexible=0):
    """The level of a feature that is in force from here on."""

    name: str = string("Name of the feature.")
    feature_level: int = int16("Its level; 0 = off.")


class ClientQuotaRecord(Data, key=14, versions="0", flexible=0):
    """A quota of a user, client id or address was set or removed."""

    class Entity(Struct):
        """One part of the entity's name."""

        entity_type: str = string("user, client-id or ip.")
        entity_name: str | None = string("Which one; null = the default of the type.", nullable=True)

    entity: list[Entity] = array(Entity, "Parts that together name the entity.")
    key: str = string("Name of the quota, such as producer_byte_rate.")
    value: float = float64("The limit, in the quota's own unit.")
    remove: bool = boolean("True = the quota is gone.")


class ProducerIdsRecord(Data, key=15, versions="0", flexible=0):
    """A block of producer ids was given to a broker."""

    broker_id: int = int32("The broker that asked.")
    broker_epoch: int = int64("Its epoch.", default=-1)
    next_producer_id: int = int64("The first id after the block.")


class AccessControlEntryRecord(Data, key=18, versions="0", flexible=0):
    """An access rule was added."""

    id: UUID = uuid_("Id of the rule, by which it is removed.")
    resource_type: int = int8("2 topic, 3 group, 4 cluster, 5 transactional id, 6 token, 7 user.")
    resource_name: str = string("Name or name prefix that the rule covers; * = every resource.")
    pattern_type: int = int8("How the name is read: 3 = literally, 4 = as a prefix.")
    principal: str = string("Who the rule is about, as in User:alice; User:* = everyone.")
    host: str = string("Address the rule applies to; * = every host.")
    operation: int = int8("2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, up to 15.")
    permission_type: int = int8("What the rule does: 2 = deny, 3 = allow.")


class RemoveAccessControlEntryRecord(Data, key=19, versions="0", flexible=0):
    """An access rule was removed."""

    id: UUID = uuid_("Id of the rule.")


class RemoveUserScramCredentialRecord(Data, key=22, versions="0", flexible=0):
    """A user lost a SCRAM credential."""

    name: str = string("The user.")
    mechanism: int = int8("1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512.")


class RemoveDelegationTokenRecord(Data, key=26, versions="0", flexible=0):
    """A delegation token is gone."""

    token_id: str = string("Its id.")


MetadataRecord = (
    TopicRecord
    | PartitionRecord
    | ConfigRecord
    | RemoveTopicRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | RemoveUserScramCredentialRecord
    | RemoveDelegationTokenRecord
)

_TYPES: Final[dict[int, type[MetadataRecord]]] = {cls.__message__.key: cls for cls in get_args(MetadataRecord)}


def encode_metadata(record: MetadataRecord) -> bytes:
    """The value of a record in the metadata log, in the version that Kafka 4.2 writes (partitions 1, others 0)."""
    version = 1 if isinstance(record, PartitionRecord) else 0
    return uvarint(_FRAME_VERSION) + uvarint(record.__message__.key) + uvarint(version) + record.encode(version)


def decode_metadata(raw: bytes) -> MetadataRecord | None:
    """The record in a value of the metadata log; None for a type that says nothing here, such as a registration.

    Raises:
        ProtocolError: not such a value.
    """
    try:
        frame, pos = read_uvarint(raw, 0)
        number, pos = read_uvarint(raw, pos)
        version, pos = (0, pos + 1) if raw[pos] == 0 else read_uvarint(raw, pos)
    except (IndexError, ValueError):
        raise ProtocolError("metadata record", 0, "", 0, "no frame version, type and version begin it") from None
    if frame != _FRAME_VERSION:
        raise ProtocolError("metadata record", 0, "", 0, f"frame version {frame} where 1 is expected")
    cls = _TYPES.get(number)
    return None if cls is None else cls.decode(memoryview(raw)[pos:], version)
