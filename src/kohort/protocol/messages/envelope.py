"""Envelope: API 58."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import bytes_, int16


class EnvelopeRequest(Request, key=58, versions="0", flexible=0):
    """A broker forwards a client's request to the controller on the client's behalf."""

    request_data: bytes = bytes_("The client's request as bytes, header included, without the size.")
    request_principal: bytes | None = bytes_(
        "Who the client is, as the principal serde of the broker wrote it.", nullable=True, default=b""
    )
    client_host_address: bytes = bytes_("IP address of the client: 4 bytes, or 16 for IPv6.")


class EnvelopeResponse(Response, key=58, versions="0", flexible=0):
    """The controller's answer to a forwarded request, for the broker to pass on."""

    response_data: bytes | None = bytes_(
        "Answer for the client as bytes, header included; null after an error.", nullable=True
    )
    error_code: int = int16("0, or why the envelope failed; the client's own errors are inside.")
