from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.sasl import plain
from kohort.security.sasl.exchange import AuthenticationFailedError
from kohort.security.sasl.plain import PlainExchange

USERS = {"alice": "secret", "bøb": "pa, ss=w"}


@pytest.mark.parametrize("name", USERS)
def test_our_client_gets_in(name: str) -> None:
    exchange = PlainExchange(USERS)
    assert exchange.evaluate(next(plain(name, USERS[name]))) == b""
    assert exchange.name == name


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (b"\0alice\0wrong", "Invalid username or password"),
        (b"\0nobody\0secret", "Invalid username or password"),
        (b"\0alice\0", "password not specified"),
        (b"\0\0secret", "username not specified"),
        (b"bob\0alice\0secret", "different from username"),
        (b"alice\0secret", "expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "expected 3 tokens, got 4"),
        (b"", "expected 3 tokens, got 1"),
        (b"\0\xff\0x", "it isn't UTF-8"),
    ],
)
def test_who_does_not(token: bytes, said: str) -> None:
    exchange = PlainExchange(USERS)
    with pytest.raises(AuthenticationFailedError, match=said):
        exchange.evaluate(token)
    assert exchange.name is None


@given(st.binary(max_size=60))
def test_any_bytes(token: bytes) -> None:
    exchange = PlainExchange(USERS)
    try:
        exchange.evaluate(token)
    except AuthenticationFailedError:
        assert exchange.name is None
    else:
        assert USERS[exchange.name or ""].encode() == token.split(b"\0")[2]
