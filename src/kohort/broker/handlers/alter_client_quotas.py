"""AlterClientQuotas: sets and removes quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.client_quotas import Entity, QuotaChange
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

SERVED: Final = Served(AlterClientQuotasRequest, versions=(0, 1), max_items=ONE_STEP)

Entry = AlterClientQuotasResponse.Entry


def _change(entry: AlterClientQuotasRequest.Entry) -> QuotaChange:
    return QuotaChange(
        frozenset({part.entity_type: part.entity_name for part in entry.entity}.items()),
        [(op.key, None if op.remove else op.value) for op in entry.ops],
    )


def handle(request: AlterClientQuotasRequest, context: Context) -> Slices[AlterClientQuotasResponse]:
    """Changes all quotas of an entity, or none of them."""
    changes = yield from in_slices(_change, request.entries)
    results: dict[Entity, tuple[ErrorCode, str | None]]
    if not context.cluster_allowed(Operation.ALTER_CONFIGS):
        results = {change.entity: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None) for change in changes}
    else:
        try:
            results = context.broker.client_quotas.alter(changes, validate_only=request.validate_only)
        except KafkaError as error:
            results = {change.entity: (error.code, error.detail) for change in changes}
    return AlterClientQuotasResponse(
        entries=[
            Entry(
                error_code=code,
                error_message=message,
                entity=[Entry.Entity(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, (code, message) in results.items()
        ]
    )
