"""GetTelemetrySubscriptions: API 71."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import array, boolean, int8, int16, int32, string, uuid_


class GetTelemetrySubscriptionsRequest(Request, key=71, versions="0", flexible=0):
    """A client asks which of its metrics the cluster wants to be sent."""

    client_instance_id: UUID = uuid_("The client's instance id; the zero uuid when asking for the first time.")


class GetTelemetrySubscriptionsResponse(Response, key=71, versions="0", flexible=0):
    """Which metrics to push, how often, how large and in which compression."""

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    client_instance_id: UUID = uuid_("The id given to a client that sent the zero uuid; otherwise zero.")
    subscription_id: int = int32("Identifies this set of subscriptions; changes whenever the set does.")
    accepted_compression_types: tuple[int, ...] = array(
        int8, "Codecs for pushes, best first: 0 = none, 1 = gzip, 2 = snappy, 3 = lz4, 4 = zstd."
    )
    push_interval_ms: int = int32("How long to wait between pushes, in ms.")
    telemetry_max_bytes: int = int32("Largest Metrics payload the broker takes in one push, in bytes.")
    delta_temporality: bool = boolean(
        "How counters are sent: true = change since the last push, false = running total."
    )
    requested_metrics: tuple[str, ...] = array(
        string, "Name prefixes of the metrics wanted; none = no metrics, one empty string = all."
    )
