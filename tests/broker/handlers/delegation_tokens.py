"""What the tests of delegation tokens have in common."""

from __future__ import annotations

from typing import Any, Final

from kohort.broker.config.listeners import SecurityProtocol
from kohort.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from tests.broker.handlers.conftest import Ask

ENABLED: Final = {
    "delegation.token.secret.key": "secret",
    "delegation.token.max.lifetime.ms": 1000,
    "delegation.token.expiry.time.ms": 100,
}

Renewer = CreateDelegationTokenRequest.Renewer


def by_sasl(principal: str = "User:alice") -> dict[str, Any]:
    """A session of somebody who has authenticated."""
    return {"principal": principal, "protocol": SecurityProtocol.SASL_PLAINTEXT}


def nobodys() -> list[dict[str, Any]]:
    """Sessions that may not ask for tokens."""
    return [
        {"principal": "User:alice", "protocol": SecurityProtocol.PLAINTEXT},
        {"principal": "User:ANONYMOUS", "protocol": SecurityProtocol.SSL},
        {**by_sasl(), "by_token": True},
    ]


def create(ask: Ask, principal: str = "User:alice", *renewers: str, now: int = 0) -> CreateDelegationTokenResponse:
    """A new token."""
    request = CreateDelegationTokenRequest(
        renewers=[Renewer(principal_type="User", principal_name=name) for name in renewers], max_lifetime_ms=-1
    )
    response: CreateDelegationTokenResponse = ask(request, now=now, **by_sasl(principal))
    assert response.error_code == 0
    return response
