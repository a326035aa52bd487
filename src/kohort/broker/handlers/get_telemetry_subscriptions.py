"""GetTelemetrySubscriptions: the metrics that a client pushes (KIP-714)."""

from __future__ import annotations

from typing import Final

from kohort.broker.client_telemetry import match_parameters
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import KafkaError
from kohort.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kohort.protocol.schema import NO_UUID

SERVED: Final = Served(GetTelemetrySubscriptionsRequest, versions=(0, 0))

ACCEPTED_CODECS: Final = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy, in Kafka's order of preference."""


def handle(request: GetTelemetrySubscriptionsRequest, context: Context) -> GetTelemetrySubscriptionsResponse:
    """Returns the client's subscription; a client without an id gets one."""
    telemetry = context.broker.client_telemetry
    client = request.client_instance_id
    if client == NO_UUID:
        client = telemetry.new_id()
    try:
        subscription = telemetry.subscribe(
            client, match_parameters(client, context.client_id, context.session), context.now
        )
    except KafkaError as error:
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=client,
        subscription_id=subscription.subscription_id,
        accepted_compression_types=ACCEPTED_CODECS,
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=subscription.metrics,
    )
