from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.security.sasl.exchange import AuthenticationFailedError
from kohort.security.sasl.oauthbearer import (
    FirstMessage,
    InvalidTokenError,
    OAuthBearerExchange,
    ValidToken,
    parse_first_message,
)


def validate(token: str) -> ValidToken:
    if token != "good":
        raise InvalidTokenError("it isn't")
    return ValidToken("a,b", 7000)


@pytest.mark.parametrize(
    ("message", "parsed"),
    [
        (b"n,,\x01auth=Bearer good\x01\x01", FirstMessage("", "good", {})),
        (b"n,a=a=2Cb=3D,\x01auth=bearer  x.y-z_~+/==\x01\x01", FirstMessage("a,b=", "x.y-z_~+/==", {})),
        (b"n,,\x01a=b\x01auth=BEARER t\x01c=d =e\t\x01\x01", FirstMessage("", "t", {"a": "b", "c": "d =e\t"})),
        (b"n,,\x01auth=Bearer one\x01auth=Bearer two\x01\x01", FirstMessage("", "two", {})),
        ("n,a=zoë,\x01auth=Bearer t\x01\x01".encode(), FirstMessage("zoë", "t", {})),
    ],
)
def test_messages(message: bytes, parsed: FirstMessage) -> None:
    assert parse_first_message(message) == parsed


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"", ""),
        (b"\x01", ""),
        (b"\0alice\0secret", ""),
        (b"n,,\x01auth=Bearer t\x01", ""),
        (b"n,,\x01auth=Bearer t\x01\x01\x01", ""),
        (b"n,,auth=Bearer t\x01\x01", ""),
        (b"y,,\x01auth=Bearer t\x01\x01", ""),
        (b"n,a=,\x01auth=Bearer t\x01\x01", ""),
        (b"n,a=x=2c,\x01auth=Bearer t\x01\x01", ""),
        (b"n,,\x01auth=Bearer t\x01n1=v\x01\x01", ""),
        (b"n,,\x01auth=Bearer t\x01n=\x01\x01", ""),
        (b"n,,\x01auth=Bearer t\x01n=\xff\x01\x01", ""),
        (b"n,,\x01auth=Bearer t\x01" + b"n=v\x01" * 64 + b"\x01", ""),
        (b"n,,\x01\x01", ": 'auth' not specified"),
        (b"n,,\x01Auth=Bearer t\x01\x01", ": 'auth' not specified"),
        (b"n,,\x01auth=Bearer\x01\x01", ": invalid 'auth' format"),
        (b"n,,\x01auth=Bearer t u\x01\x01", ": invalid 'auth' format"),
        (b"n,,\x01auth=Bearer t=u\x01\x01", ": invalid 'auth' format"),
    ],
)
def test_what_is_no_message(message: bytes, says: str) -> None:
    with pytest.raises(AuthenticationFailedError, match=f"client first message{re.escape(says)}$"):
        parse_first_message(message)


def test_another_scheme() -> None:
    with pytest.raises(AuthenticationFailedError, match="Invalid scheme"):
        parse_first_message(b"n,,\x01auth=Basic good\x01\x01")


@pytest.mark.parametrize("authorization_id", [b"", b"a=a=2Cb"])
def test_a_good_token_says_who_it_is_and_until_when(authorization_id: bytes) -> None:
    exchange = OAuthBearerExchange(validate)
    assert exchange.evaluate(b"n,%b,\x01auth=Bearer good\x01\x01" % authorization_id) == b""
    assert (exchange.name, exchange.expires_at, exchange.by_token) == ("a,b", 7000, False)


def test_acting_as_another_is_refused() -> None:
    exchange = OAuthBearerExchange(validate)
    with pytest.raises(AuthenticationFailedError, match="authorization id that is different"):
        exchange.evaluate(b"n,a=root,\x01auth=Bearer good\x01\x01")
    assert exchange.name is None


@pytest.mark.parametrize("then", [b"\x01", b"", b"n,,\x01auth=Bearer good\x01\x01"])
def test_a_bad_token_is_answered_once_and_then_it_is_over(then: bytes) -> None:
    exchange = OAuthBearerExchange(validate)
    assert exchange.evaluate(b"n,,\x01auth=Bearer bad\x01\x01") == b'{"status":"invalid_token"}'
    with pytest.raises(AuthenticationFailedError, match=r'^{"status":"invalid_token"}$'):
        exchange.evaluate(then)
    assert exchange.name is None


PIECES = st.sampled_from(["n,", "a=", "alice", ",", "\x01", "auth=", "Bearer ", "good", "=2C", "x=y", " ", "\xff"])


@given(st.binary(max_size=40) | st.lists(PIECES, max_size=12).map(lambda pieces: "".join(pieces).encode()))
def test_any_bytes_let_in_who_has_the_token_alone(message: bytes) -> None:
    exchange = OAuthBearerExchange(validate)
    with contextlib.suppress(AuthenticationFailedError):
        exchange.evaluate(message)
    assert exchange.name is None or re.search(rb"auth=Bearer +good\x01", message)


@given(
    st.text(st.characters(min_codepoint=1, exclude_characters="=,\x01", codec="utf-8")),
    st.from_regex(r"[-_~+/.a-zA-Z0-9]+=*", fullmatch=True),
    st.dictionaries(
        st.from_regex(r"[A-Za-z]+", fullmatch=True).filter(lambda name: name != "auth"),
        st.from_regex(r"[\x21-\x7E \t\r\n]+", fullmatch=True),
        max_size=5,
    ),
)
def test_what_is_written_is_read(name: str, token: str, extensions: dict[str, str]) -> None:
    pairs = "".join(f"{key}={value}\x01" for key, value in extensions.items())
    message = f"n,{'a=' + name if name else ''},\x01auth=Bearer {token}\x01{pairs}\x01"
    assert parse_first_message(message.encode()) == FirstMessage(name, token, extensions)
