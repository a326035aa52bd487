"""SaslAuthenticate: refused, as on a PLAINTEXT listener of Kafka."""

from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.broker.handlers.conftest import Ask


def test_it_is_refused(ask: Ask) -> None:
    assert ask(SaslAuthenticateRequest(auth_bytes=b"x")).error_code == ErrorCode.ILLEGAL_SASL_STATE
