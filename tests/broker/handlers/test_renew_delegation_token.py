"""RenewDelegationToken: refused; who has no name isn't even told that there are no tokens."""

from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.broker.handlers.conftest import Ask


@pytest.mark.parametrize(
    ("principal", "error"),
    [
        ("User:ANONYMOUS", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        ("User:alice", ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_is_refused(version: int, principal: str, error: ErrorCode, ask: Ask) -> None:
    response = ask(RenewDelegationTokenRequest(hmac=b"secret"), version, principal=principal)
    assert response.error_code == error
    assert response.expiry_timestamp_ms == -1
