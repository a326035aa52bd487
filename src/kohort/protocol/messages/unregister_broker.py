"""UnregisterBroker: API 64."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import int16, int32, string


class UnregisterBrokerRequest(Request, key=64, versions="0", flexible=0):
    """Removes a broker that is gone for good from the cluster's registrations."""

    broker_id: int = int32("Id of the broker to forget.")


class UnregisterBrokerResponse(Response, key=64, versions="0", flexible=0):
    """Tells whether the broker's registration was removed."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
