"""CreateDelegationToken: API 38."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, bytes_, int16, int32, int64, string


class CreateDelegationTokenRequest(Request, key=38, versions="1-3", flexible=2):
    """Has a delegation token issued, for oneself or on behalf of another principal.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    - v3: OwnerPrincipalType and OwnerPrincipalName: tokens for others
    """

    class Renewer(Struct):
        """One principal that may renew the token."""

        principal_type: str = string("Kind of the renewing principal; must be User.")
        principal_name: str = string("Name of the renewing principal.")

    owner_principal_type: str | None = string(
        "Kind of the principal the token will stand for; null = the caller's.", since=3, nullable=True, default=""
    )
    owner_principal_name: str | None = string(
        "Name of the principal the token will stand for; null = the caller.", since=3, nullable=True, default=""
    )
    renewers: list[Renewer] = array(Renewer, "Principals besides the owner that may renew the token.")
    max_lifetime_ms: int = int64("Longest life, renewals included, in ms; -1 = the broker's limit.")


class CreateDelegationTokenResponse(Response, key=38, versions="1-3", flexible=2):
    """The delegation token that was issued, with its secret and its deadlines.

    - v2: flexible
    - v3: TokenRequesterPrincipalType and TokenRequesterPrincipalName
    """

    error_code: int = int16("0, or the error that failed the whole request.")
    principal_type: str = string("Kind of the principal that the token stands for.")
    principal_name: str = string("Name of the principal that the token stands for.")
    token_requester_principal_type: str = string("Kind of the principal that asked for the token.", since=3)
    token_requester_principal_name: str = string("Name of the principal that asked for the token.", since=3)
    issue_timestamp_ms: int = int64("When the token was issued, in ms since the epoch.")
    expiry_timestamp_ms: int = int64("When it lapses unless renewed, in ms since the epoch.")
    max_timestamp_ms: int = int64("When it lapses for good, whatever renewals, in ms since the epoch.")
    token_id: str = string("Id of the token, used as user name in SCRAM.")
    hmac: bytes = bytes_("Secret of the token; its base64 form is the SCRAM password.")
    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
