"""AddRaftVoter: API 80."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, string, uint16, uuid_


class AddRaftVoterRequest(Request, key=80, versions="0-1", flexible=0):
    """Asks the leader of the metadata quorum to make a caught-up controller a voter.

    - v1: the answer may come before the commit: AckWhenCommitted
    """

    class Listener(Struct):
        name: str = string("Listener name, as in CONTROLLER.")
        host: str = string("Host name to connect to.")
        port: int = uint16("TCP port to connect to.")

    cluster_id: str | None = string("Cluster the request is meant for; null = any.", nullable=True, default="")
    timeout_ms: int = int32("How long the leader may take for the change, in ms.")
    voter_id: int = int32("Node id of the controller that becomes a voter.")
    voter_directory_id: UUID = uuid_("Id of the metadata log directory on that controller.")
    listeners: list[Listener] = array(Listener, "Where the new voter can be reached.")
    ack_when_committed: bool = boolean(
        "True = answer after commit; false = once the leader has appended the change.", since=1, default=True
    )


class AddRaftVoterResponse(Response, key=80, versions="0-1", flexible=0):
    """Says whether the new voter joined the metadata quorum."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string(
        "What went wrong, for people; null without an error.", nullable=True, default="", ignorable=True
    )
