"""PushTelemetry: a client pushes its metrics (KIP-714)."""

from __future__ import annotations

from typing import Final

from kohort.broker.client_telemetry import RESERVED_IDS, match_parameters
from kohort.broker.context import Context
from kohort.broker.handlers import Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse

SERVED: Final = Served(PushTelemetryRequest, versions=(0, 0))


def handle(request: PushTelemetryRequest, context: Context) -> PushTelemetryResponse:
    """Validates and counts the metrics, and drops them, as a Kafka broker without a receiver does."""
    client = request.client_instance_id
    if client in RESERVED_IDS:
        return PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        context.broker.client_telemetry.push(
            client,
            match_parameters(client, context.client_id, context.session),
            context.now,
            subscription_id=request.subscription_id,
            terminating=request.terminating,
            compression=request.compression_type,
            size=len(request.metrics),
        )
    except KafkaError as error:
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()
