"""PushTelemetry: API 72."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import boolean, bytes_, int8, int16, int32, uuid_


class PushTelemetryRequest(Request, key=72, versions="0", flexible=0):
    """A client sends its metrics to a broker, as its telemetry subscription says."""

    client_instance_id: UUID = uuid_("The instance id the client was given.")
    subscription_id: int = int32("The subscription set the metrics were collected for.")
    terminating: bool = boolean("True in the last push, as the client shuts down.")
    compression_type: int = int8("Codec of Metrics: 0 = none, 1 = gzip, 2 = snappy, 3 = lz4, 4 = zstd.")
    metrics: bytes = bytes_("OpenTelemetry MetricsData (v1, protobuf), compressed as CompressionType says.")


class PushTelemetryResponse(Response, key=72, versions="0", flexible=0):
    """Tells whether the broker took the pushed metrics."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
