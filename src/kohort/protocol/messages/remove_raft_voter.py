"""RemoveRaftVoter: API 81."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import int16, int32, string, uuid_


class RemoveRaftVoterRequest(Request, key=81, versions="0", flexible=0):
    """Asks the leader of the metadata quorum to drop a controller from the voters."""

    cluster_id: str | None = string("Cluster the request is meant for; null = any.", nullable=True, default="")
    voter_id: int = int32("Node id of the controller that stops being a voter.")
    voter_directory_id: UUID = uuid_("Id of that voter's metadata log directory; must match as well.")


class RemoveRaftVoterResponse(Response, key=81, versions="0", flexible=0):
    """Says whether the voter left the metadata quorum."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string(
        "What went wrong, for people; null without an error.", nullable=True, default="", ignorable=True
    )
