"""DescribeUserScramCredentials: who the users of SCRAM are, without their secrets (KIP-554)."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, shown
from kohort.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

SERVED: Final = Served(DescribeUserScramCredentialsRequest, versions=(0, 0), max_items=ONE_STEP)

Result = DescribeUserScramCredentialsResponse.Result


def handle(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> Slices[DescribeUserScramCredentialsResponse]:
    """Describes users, or all of them if none is named."""
    if not context.cluster_allowed(Operation.DESCRIBE):
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None
        )
    users = context.broker.scram_users
    wanted = Counter([user.name for user in request.users or ()] or users)

    def described(name: str) -> Result:
        if wanted[name] > 1:
            return _failed(name, ErrorCode.DUPLICATE_RESOURCE, f"The user {shown(name)} is in the request twice.")
        credentials = users.of(name)
        if not credentials:
            return _failed(name, ErrorCode.RESOURCE_NOT_FOUND, f"There is no user {shown(name)}.")
        infos = [
            Result.CredentialInfo(mechanism=mechanism.number, iterations=each.iterations)
            for mechanism, each in credentials.items()
        ]
        return Result(user=name, error_message=None, credential_infos=infos)

    results = yield from in_slices(described, wanted)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _failed(name: str, code: ErrorCode, message: str) -> Result:
    return Result(user=name, error_code=code, error_message=message)
