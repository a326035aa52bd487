"""DescribeDelegationToken: API 41."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, bytes_, int16, int32, int64, string


class DescribeDelegationTokenRequest(Request, key=41, versions="1-3", flexible=2):
    """Lists the delegation tokens of given owners that the caller may see.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: flexible
    - v3: same layout; the response names who asked for each token
    """

    class Owner(Struct):
        principal_type: str = string("Kind of the owning principal, usually User.")
        principal_name: str = string("Name of the owning principal.")

    owners: list[Owner] | None = array(
        Owner, "Owners whose tokens are wanted; null = all that are visible.", nullable=True, default=[]
    )


class DescribeDelegationTokenResponse(Response, key=41, versions="1-3", flexible=2):
    """The delegation tokens found, with their secrets and deadlines.

    - v2: flexible
    - v3: TokenRequesterPrincipalType and TokenRequesterPrincipalName
    """

    class Token(Struct):
        class Renewer(Struct):
            """One principal that may renew the token."""

            principal_type: str = string("Kind of the renewing principal.")
            principal_name: str = string("Name of the renewing principal.")

        principal_type: str = string("Kind of the principal that the token stands for.")
        principal_name: str = string("Name of the principal that the token stands for.")
        token_requester_principal_type: str = string("Kind of the principal that asked for the token.", since=3)
        token_requester_principal_name: str = string("Name of the principal that asked for the token.", since=3)
        issue_timestamp: int = int64("When the token was issued, in ms since the epoch.")
        expiry_timestamp: int = int64("When it lapses unless renewed, in ms since the epoch.")
        max_timestamp: int = int64("When it lapses for good, whatever renewals, in ms since the epoch.")
        token_id: str = string("Id of the token, used as user name in SCRAM.")
        hmac: bytes = bytes_("Secret of the token; its base64 form is the SCRAM password.")
        renewers: list[Renewer] = array(Renewer, "Principals besides the owner that may renew it.")

    error_code: int = int16("0, or the error that failed the whole request.")
    tokens: list[Token] = array(Token, "Tokens of those owners that the caller may see.")
    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
