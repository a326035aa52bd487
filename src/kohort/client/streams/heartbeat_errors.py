"""What a member of a streams group does about each error of a heartbeat."""

from __future__ import annotations

from typing import Final

from kohort.client.heartbeat_errors import HeartbeatErrors, Reaction
from kohort.protocol.errors import ErrorCode

E = ErrorCode
HEARTBEAT_ERRORS: Final = HeartbeatErrors(
    {
        E.STREAMS_INVALID_TOPOLOGY: (Reaction.FAIL, "mend the topology"),
        E.STREAMS_INVALID_TOPOLOGY_EPOCH: (Reaction.FAIL, "mend the topology's epoch"),
        E.STREAMS_TOPOLOGY_FENCED: (Reaction.FAIL, "start the application again with the topology that the group has"),
        E.GROUP_MAX_SIZE_REACHED: (
            Reaction.FAIL,
            "stop another member, or raise group.streams.max.size on the brokers",
        ),
        E.UNRELEASED_INSTANCE_ID: (
            Reaction.RETRY_FOR_A_MINUTE,
            "nothing if the member with this instance_id died: its session ends soon; if it lives, stop it",
        ),
        E.FENCED_INSTANCE_ID: (Reaction.FAIL, "two members run with one instance_id; give each its own"),
        E.UNSUPPORTED_VERSION: (
            Reaction.FAIL,
            "the brokers have no streams groups: they take Apache Kafka 4.2 or kohort serve, and streams.version 1; "
            'members with group_protocol="classic" do without',
        ),
        E.INVALID_REQUEST: (
            Reaction.FAIL,
            "all members need the same topology, and the brokers must support what it and the member ask for",
        ),
        E.TOPIC_AUTHORIZATION_FAILED: (
            Reaction.FAIL,
            "the user needs DESCRIBE on all topics of the topology, and CREATE for internal ones",
        ),
    }
)
