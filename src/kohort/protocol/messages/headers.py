"""The headers of requests and responses."""

from __future__ import annotations

from kohort.protocol.message import Header
from kohort.protocol.schema import int16, int32, string


class RequestHeader(Header, versions="1-2", flexible=2):
    """The header of a request: API, version, and the correlation id of its response.

    - v2: flexible, yet ClientId keeps its two-byte length, so that any broker can read it
    """

    request_api_key: int = int16("Number of the API, e.g. 0 = Produce, 1 = Fetch, 18 = ApiVersions.")
    request_api_version: int = int16("Version that the body is written in.")
    correlation_id: int = int32("Number chosen by the client; the reply repeats it.")
    client_id: str | None = string(
        "Name of the client for logs and quotas, always with a two-byte length.",
        nullable=True,
        default="",
        compact=False,
    )


class ResponseHeader(Header, versions="0-1", flexible=1):
    """The header of a response; that of ApiVersions always has version 0.

    - v1: flexible
    """

    correlation_id: int = int32("CorrelationId of the request that is answered.")
