"""Strangers with very large tokens hurt nobody."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.interop.secured import SecureKohort
from tests.isolation.attacks import Attack
from tests.isolation.frames import frame
from tests.isolation.test_attacks import judge
from tests.isolation.watch import Waits, Watch
from tests.signed_tokens import signed

LARGE = 500_000
"""Bytes; `sasl.server.max.receive.size` is 524,288."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SecureKohort]:
    server = SecureKohort(tmp_path)
    server.start()
    yield server
    server.stop()


def exchange(message: str) -> list[bytes]:
    shake = SaslHandshakeRequest(mechanism="OAUTHBEARER")
    return [frame(shake, 1), frame(SaslAuthenticateRequest(auth_bytes=message.encode()), 2)]


def test_very_large_tokens(server: SecureKohort) -> None:
    pair = "a=b\x01"
    header, content, signature = signed().split(".")
    messages = {
        "wrong signature": f"n,,\x01auth=Bearer {header}.{content}{'A' * LARGE}.{signature}\x01\x01",
        "expired": f"n,,\x01auth=Bearer {signed(exp=1, iat=0, more='x' * (LARGE * 2 // 3))}\x01\x01",
        "very deep": f"n,,\x01auth=Bearer {signed(deep=json.loads('[' * 900 + ']' * 900))}\x01\x01",
        "another name": f"n,a={'=2C' * (LARGE // 3)},\x01auth=Bearer {signed()}\x01\x01",
        "very many pairs": f"n,,\x01auth=Bearer {signed()}\x01{pair * (LARGE // 4)}\x01",
    }

    async def main() -> dict[str, Waits]:
        async with Watch(server.port, server.pid) as watch:
            port = server.ports["SASL_PLAINTEXT"]
            return {
                name: await watch.beside(Attack(name, lambda text=text: exchange(text), 20), port)  # type: ignore[misc]
                for name, text in messages.items()
            }

    found = asyncio.run(main())
    judge(server, found)
    said = server.stderr()
    assert "its signature is wrong" in said and "it has expired" in said
    assert "authorization id that is different" in said and "Invalid OAUTHBEARER client first message" in said
