"""DescribeUserScramCredentials: API 50."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(Request, key=50, versions="0", flexible=0):
    """Asks which SCRAM credentials users have, without the secrets."""

    class User(Struct):
        name: str = string("Name of the user to look up.")

    users: list[User] | None = array(
        User, "Users to look up; null or empty = all who have a credential.", nullable=True, default=[]
    )


class DescribeUserScramCredentialsResponse(Response, key=50, versions="0", flexible=0):
    """Each user's SCRAM mechanisms with their iteration counts."""

    class Result(Struct):
        class CredentialInfo(Struct):
            """One credential, without its secrets."""

            mechanism: int = int8("1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512.")
            iterations: int = int32("How often the hash was applied to salt the password.")

        user: str = string("Name of the user.")
        error_code: int = int16("0, or why this user could not be described.")
        error_message: str | None = string(
            "Why it failed, for people; null without an error.", nullable=True, default=""
        )
        credential_infos: list[CredentialInfo] = array(
            CredentialInfo, "Credentials of the user, at most one per mechanism."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    results: list[Result] = array(Result, "One entry per user.")
