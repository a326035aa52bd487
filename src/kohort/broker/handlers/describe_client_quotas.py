"""DescribeClientQuotas: the quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.client_quotas import CLIENT_ID, IP, TYPES, USER, Entity, EntityFilter
from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.turns import Slices, in_slices
from kohort.protocol.errors import ErrorCode, KafkaError, shown
from kohort.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

SERVED: Final = Served(DescribeClientQuotasRequest, versions=(0, 1), max_items=ONE_STEP)

EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2

Component = DescribeClientQuotasRequest.Component
Entry = DescribeClientQuotasResponse.Entry


def handle(request: DescribeClientQuotasRequest, context: Context) -> Slices[DescribeClientQuotasResponse]:
    if not context.cluster_allowed(Operation.DESCRIBE_CONFIGS):
        return _failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    try:
        wanted = _filter(request.components, request.strict)
    except KafkaError as error:
        return _failed(error.code, error.detail)
    found = list(context.broker.client_quotas.matching(wanted))
    return DescribeClientQuotasResponse(error_message=None, entries=(yield from in_slices(_entry, found)))


def _entry(described: tuple[Entity, dict[str, float]]) -> Entry:
    entity, quotas = described
    return Entry(
        entity=[Entry.Entity(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[Entry.Value(key=key, value=value) for key, value in quotas.items()],
    )


def _failed(code: ErrorCode, message: str | None) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _filter(components: Sequence[Component], strict: bool) -> EntityFilter:
    exact: dict[str, str | None] = {}
    present: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A type of entity is empty.")
        if kind in exact or kind in present:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"The filter has the type {shown(kind)} twice.")
        if kind not in TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"There is no type of entity {shown(kind)}.")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"There is no type of match {component.match_type}.")
        if (component.match is None) is (component.match_type == EXACT):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "An exact match has a name, the others haven't.")
        if component.match_type == ANY:
            present.add(kind)
        else:
            exact[kind] = component.match
    named = exact.keys() | present
    if IP in named and named & {USER, CLIENT_ID}:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "An ip doesn't go together with a user or client-id.")
    return EntityFilter(exact, frozenset(present), strict)
