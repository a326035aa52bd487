"""ApiVersions: the supported APIs with their versions, and the finalized features."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from kohort.broker.context import Context
from kohort.broker.features import SUPPORTED
from kohort.broker.handlers import Served, served_apis
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.messages.push_telemetry import PushTelemetryRequest

SERVED: Final = Served(ApiVersionsRequest, versions=(0, 5))

NAMED: Final = 3
"""First version in which clients say what software they are (KIP-511)."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")

ADDRESSED: Final = 5
"""First version in which clients say what cluster and node they mean to reach (KIP-1242)."""

FROM_ZERO: Final = 4
"""First version whose clients can read a minimum level of 0 (KAFKA-17492)."""

PRODUCE_FROM: Final = 0
"""First version of Produce that clients are told of, though older ones than 3 aren't served: else older librdkafka
(Debian's kcat) takes it that the broker can't gzip, snappy and lz4, and doesn't compress. As in Kafka (KAFKA-18659)."""

TELEMETRY: Final = frozenset({GetTelemetrySubscriptionsRequest.__message__.key, PushTelemetryRequest.__message__.key})
"""APIs that are offered only where clients are to push metrics."""


@cache
def api_keys(*, telemetry: bool) -> list[ApiVersionsResponse.ApiKey]:
    """The APIs that clients are told of, with or without those of client metrics."""
    return [
        ApiVersionsResponse.ApiKey(
            api_key=key, min_version=PRODUCE_FROM if served.request is ProduceRequest else first, max_version=last
        )
        for key, served in served_apis()
        for first, last in [served.versions]
        if telemetry or key not in TELEMETRY
    ]


def handle(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """Returns APIs and features, to a client with a valid software name and version."""
    if context.version >= NAMED and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    if context.version >= ADDRESSED and _is_astray(request, context):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED, api_keys=[])
    features = context.broker.features
    context.session.software_name = request.client_software_name
    context.session.software_version = request.client_software_version
    return ApiVersionsResponse(
        api_keys=api_keys(telemetry=context.broker.client_telemetry.offered),
        supported_features=[
            ApiVersionsResponse.SupportedFeature(name=name, min_version=levels.lowest, max_version=levels.highest)
            for name, levels in SUPPORTED.items()
            if levels.lowest or context.version >= FROM_ZERO
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeature(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.finalized().items()
        ],
    )


def _is_astray(request: ApiVersionsRequest, context: Context) -> bool:
    """Whether the client means another cluster or node: what it knows of the cluster is out of date."""
    if request.cluster_id is None:
        return False
    return request.cluster_id != context.broker.cluster_id or request.node_id != context.broker.node_id
