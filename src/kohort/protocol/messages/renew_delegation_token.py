"""RenewDelegationToken: API 39."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import bytes_, int16, int32, int64


class RenewDelegationTokenRequest(Request, key=39, versions="1-2", flexible=2):
    """Puts off the expiry of a delegation token.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    """

    hmac: bytes = bytes_("Secret of the token to renew.")
    renew_period_ms: int = int64("How long from now it is to live, in ms; 0 or less = the broker's default.")


class RenewDelegationTokenResponse(Response, key=39, versions="1-2", flexible=2):
    """Says until when the renewed token is valid.

    - v2: flexible
    """

    error_code: int = int16("0, or the error that failed the whole request.")
    expiry_timestamp_ms: int = int64("When it now lapses unless renewed, in ms since the epoch.")
    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
