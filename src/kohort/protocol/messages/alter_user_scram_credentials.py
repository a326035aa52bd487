"""AlterUserScramCredentials: API 51."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, bytes_, int8, int16, int32, string


class AlterUserScramCredentialsRequest(Request, key=51, versions="0", flexible=0):
    """Creates, replaces and deletes users' SCRAM credentials."""

    class Deletion(Struct):
        name: str = string("User who loses the credential.")
        mechanism: int = int8("1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512.")

    class Upsertion(Struct):
        """One credential to create or replace."""

        name: str = string("User who gets the credential.")
        mechanism: int = int8("1 = SCRAM-SHA-256, 2 = SCRAM-SHA-512.")
        iterations: int = int32("How often the hash was applied; from 4096 to 16384.")
        salt: bytes = bytes_("Random bytes mixed into the password; the sender picks them.")
        salted_password: bytes = bytes_("Password after salting and hashing, as in RFC 5802; never in clear.")

    deletions: list[Deletion] = array(Deletion, "Credentials to delete.")
    upsertions: list[Upsertion] = array(Upsertion, "Credentials to create, or to put in place of existing ones.")


class AlterUserScramCredentialsResponse(Response, key=51, versions="0", flexible=0):
    """Says for each user whether the SCRAM credentials were changed."""

    class Result(Struct):
        user: str = string("Name of the user.")
        error_code: int = int16("0, or why this user's changes failed.")
        error_message: str | None = string(
            "Why it failed, for people; null without an error.", nullable=True, default=""
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    results: list[Result] = array(Result, "One outcome per user named in the request.")
