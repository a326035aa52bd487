"""AlterUserScramCredentials: sets and removes the credentials of SCRAM's users (KIP-554)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.scram_users import UserChange
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kohort.security.sasl.scram import ScramCredential, ScramMechanism, credential

SERVED: Final = Served(AlterUserScramCredentialsRequest, versions=(0, 0), max_items=ONE_STEP)

Upsertion = AlterUserScramCredentialsRequest.Upsertion
Result = AlterUserScramCredentialsResponse.Result


def _change(wanted: Upsertion) -> UserChange:
    mechanism = ScramMechanism.numbered(wanted.mechanism)
    salt = bytes(wanted.salt)
    made = (
        ScramCredential(salt, b"", b"", wanted.iterations)  # which is refused
        if mechanism is None
        else credential(mechanism, bytes(wanted.salted_password), salt, wanted.iterations)
    )
    return UserChange(wanted.name, wanted.mechanism, made)


def handle(request: AlterUserScramCredentialsRequest, context: Context) -> Slices[AlterUserScramCredentialsResponse]:
    """Changes each user, or says why not."""
    changes = [UserChange(each.name, each.mechanism, None) for each in request.deletions]
    results: dict[str, KafkaError | None]
    if context.cluster_allowed(Operation.ALTER):
        changes += yield from in_slices(_change, request.upsertions)
        try:
            results = context.broker.scram_users.alter(changes)
        except KafkaError as error:
            results = {change.name: error for change in changes}
    else:
        names = [*(each.name for each in request.deletions), *(each.name for each in request.upsertions)]
        results = dict.fromkeys(names, KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    return AlterUserScramCredentialsResponse(
        results=[
            Result(user=name, error_message=None)
            if error is None
            else Result(user=name, error_code=error.code, error_message=error.detail)
            for name, error in results.items()
        ]
    )
