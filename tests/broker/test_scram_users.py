"""The users of SCRAM, and what most of their credentials have in common."""

from __future__ import annotations

from kohort.broker.scram_users import ScramUsers, UserChange
from kohort.security.sasl.scram import ScramCredential, ScramMechanism, Shape

SHA_256, SHA_512 = ScramMechanism


def change(name: str, iterations: int, salt: bytes = b"0123456789abcdefghijklmno") -> UserChange:
    return UserChange(name, SHA_256.number, ScramCredential(salt, b"", b"", iterations))


def test_the_shape_of_most_credentials() -> None:
    users = ScramUsers(lambda records: None)
    assert users.usual_shape(SHA_256) == Shape(4096)
    users.alter([change("a", 8192), change("b", 5000, b"\0" * 16), change("c", 5000, b"\1" * 16)])
    assert users.usual_shape(SHA_256) == Shape(5000, 16)
    assert users.usual_shape(SHA_512) == Shape(4096)
    users.alter([change("b", 8192), UserChange("c", SHA_256.number, None)])
    assert users.usual_shape(SHA_256) == Shape(8192)
    users.alter([UserChange(name, SHA_256.number, None) for name in ("a", "b")])
    assert users.usual_shape(SHA_256) == Shape(4096)
