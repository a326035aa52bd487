"""ExpireDelegationToken: API 40."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(Request, key=40, versions="1-2", flexible=2):
    """Sets a new expiry for a delegation token, or revokes it at once.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    """

    hmac: bytes = bytes_("Secret of the token to expire.")
    expiry_time_period_ms: int = int64("How long from now it is to stay valid, in ms; below 0 = revoke it at once.")


class ExpireDelegationTokenResponse(Response, key=40, versions="1-2", flexible=2):
    """Says when the token ends.

    - v2: flexible
    """

    error_code: int = int16("0, or the error that failed the whole request.")
    expiry_timestamp_ms: int = int64("When it now lapses, in ms since the epoch; the present if revoked.")
    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
