from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.exceptions import UnsupportedAlgorithm
from hypothesis import given
from hypothesis import strategies as st
from jwt import PyJWK

from kohort.security.sasl.oauthbearer import InvalidTokenError, ValidToken
from kohort.security.signed_tokens import (
    KeySetError,
    TokenRules,
    UnknownKeyError,
    check_claims,
    check_token,
    parse_key_set,
)
from tests.signed_tokens import AUDIENCE, ISSUER, claims, jwk, key_set, public_pem, signed

NOW_S = 1_800_000_000
NOW = NOW_S * 1000 + 999
RULES = TokenRules(frozenset({AUDIENCE, "other"}), ISSUER)


def keys(*listed: dict[str, Any]) -> Any:
    return parse_key_set(json.dumps({"keys": listed or [jwk()]}).encode())


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("kind", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_rsa_keys_take_all_their_algorithms(kind: str) -> None:
    token = signed(kind=kind, now=NOW_S)
    known = keys(jwk(kind=kind))
    assert check_token(token, known, RULES, NOW) == ValidToken("alice", (NOW_S + 3600) * 1000)


@pytest.mark.parametrize("kind", ["ES256", "ES384", "ES512", "EdDSA"])
def test_keys_on_curves(kind: str) -> None:
    assert check_token(signed(kind=kind, now=NOW_S), keys(jwk(kind=kind)), RULES, NOW).name == "alice"


def test_a_token_of_another_key_with_the_same_name() -> None:
    with pytest.raises(InvalidTokenError, match="signature is wrong"):
        check_token(signed("second", headers={"kid": "first"}, now=NOW_S), keys(), RULES, NOW)


def test_a_token_that_was_changed() -> None:
    header, content, signature = signed(now=NOW_S).split(".")
    other = part(claims(NOW_S, sub="root"))
    assert content != other
    with pytest.raises(InvalidTokenError, match="signature is wrong"):
        check_token(f"{header}.{other}.{signature}", keys(), RULES, NOW)


def test_a_token_of_an_unknown_key() -> None:
    with pytest.raises(UnknownKeyError, match="key 'second', algorithm 'RS256'"):
        check_token(signed("second", now=NOW_S), keys(), RULES, NOW)


def test_a_token_without_a_key_is_tried_with_all() -> None:
    token = signed("second", headers={"kid": None}, now=NOW_S)
    assert check_token(token, keys(jwk("first"), jwk("second")), RULES, NOW).name == "alice"


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE"])
@pytest.mark.parametrize("key_id", ["first", None])
def test_a_token_without_a_signature(name: str, key_id: str | None) -> None:
    header = part({"alg": name, "typ": "JWT"} | ({"kid": key_id} if key_id else {}))
    for signature in ("", "AAAA"):
        with pytest.raises(InvalidTokenError):
            check_token(f"{header}.{part(claims(NOW_S))}.{signature}", keys(), RULES, NOW)


@pytest.mark.parametrize("secret", [public_pem(), public_pem().strip(), key_set()])
def test_a_public_key_is_no_shared_secret(secret: bytes) -> None:
    signed_part = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(claims(NOW_S))}"
    signature = base64.urlsafe_b64encode(hmac.digest(secret, signed_part.encode(), hashlib.sha256)).rstrip(b"=")
    with pytest.raises(InvalidTokenError, match="none of the known keys"):
        check_token(f"{signed_part}.{signature.decode()}", keys(), RULES, NOW)


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("", "isn't a signed token"),
        ("a.b", "isn't a signed token"),
        (signed() + ".", "isn't a signed token"),
        ("a" * 17_000 + ".b.c", "isn't a signed token"),
        ("!.b.c", "isn't Base64"),
        ("a.b.c", "isn't Base64"),
        (signed() + "=", "isn't Base64"),
        (f"{part([])}.b.c", "header isn't a JSON object"),
        (f"{part({'alg': ['RS256']})}.b.c", "doesn't name an algorithm"),
        (f"{part({'alg': 'RS256', 'kid': 1})}.b.c", "doesn't name an algorithm"),
        (f"{part({'alg': 'RS256', 'kid': 'first', 'b64': False, 'crit': ['b64']})}.b.c", "must be understood"),
        (f"{part({'alg': 'RS256', 'kid': 'first'})}.{part(claims())}.", "signature is wrong"),
    ],
)
def test_what_is_no_signed_token(token: str, says: str) -> None:
    with pytest.raises(InvalidTokenError, match=says):
        check_token(token, keys(), RULES, NOW)


def test_the_key_says_which_algorithm_it_is_for() -> None:
    with pytest.raises(InvalidTokenError, match="algorithm 'RS512'"):
        check_token(signed(kind="RS512", now=NOW_S), keys(jwk(kind="RS512", alg="RS256")), RULES, NOW)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"exp": NOW_S - 30}, "expired 30 s ago"),
        ({"exp": None}, "no exp"),
        ({"iat": None}, "no iat"),
        ({"exp": "soon"}, "exp isn't a date"),
        ({"exp": True}, "exp isn't a date"),
        ({"exp": float("nan")}, "exp isn't a date"),
        ({"exp": 1e300}, "exp isn't a date"),
        ({"exp": 2**100}, "exp isn't a date"),
        ({"exp": NOW_S + 1, "iat": NOW_S + 2}, "expires before"),
        ({"exp": NOW_S + 1, "nbf": NOW_S + 2}, "expires before"),
        ({"nbf": NOW_S + 31}, "good in 31 s"),
        ({"iss": "https://another.example"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        ({"aud": "another"}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": ["another", 7]}, "audience"),
        ({"aud": {AUDIENCE: 1}}, "audience"),
        ({"sub": None}, "sub isn't"),
        ({"sub": " "}, "sub isn't"),
        ({"sub": 7}, "sub isn't"),
        ({"scope": ""}, "scopes"),
        ({"scope": ["a", " "]}, "scopes"),
        ({"scope": ["a", "a "]}, "scopes"),
        ({"scope": ["a", 7]}, "scopes"),
    ],
)
def test_what_a_token_must_say(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidTokenError, match=says):
        check_claims(claims(NOW_S, **changes), RULES, NOW)


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"exp": NOW_S - 29, "iat": NOW_S - 60}, RULES),
        ({"nbf": NOW_S + 30}, RULES),
        ({"iat": NOW_S + 1000}, RULES),  # as Kafka, which only wants one
        ({"exp": NOW_S + 0.5, "iat": NOW_S - 0.5}, RULES),
        ({"aud": ["x", "other"]}, RULES),
        ({"aud": None, "iss": None}, TokenRules()),
        ({"scope": None}, RULES),
        ({"scope": ["a", "b"]}, RULES),
        ({"sub": None, "azp": " alice ", "scp": "a"}, TokenRules(sub_claim="azp", scope_claim="scp")),
    ],
)
def test_tokens_that_are_good(changes: dict[str, Any], rules: TokenRules) -> None:
    assert check_claims(claims(NOW_S, **changes), rules, NOW).name == "alice"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "JSON"),
        (b"\xff", "JSON"),
        (b"[" * 100_000, "JSON"),
        (b"[]", "isn't a JWKS"),
        (b'{"keys": 7}', "isn't a JWKS"),
        (b'{"keys": []}', "none of its 0 keys"),
        (json.dumps({"keys": [7, {}, {"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}]}).encode(), "none of its 3 keys"),
        (json.dumps({"keys": [jwk(use="enc"), jwk(key_ops=["sign"]), jwk(alg="HS256")]}).encode(), "none of its 3"),
        (json.dumps({"keys": [jwk(n="AQAB")]}).encode(), "none of its 1 keys"),
        (json.dumps({"keys": [jwk(n="!"), jwk(e=None), jwk(kty=["RSA"]), jwk(n=7)]}).encode(), "none of its 4 keys"),
    ],
)  # fmt: skip
def test_what_is_no_set_of_keys(data: bytes, says: str) -> None:
    with pytest.raises(KeySetError, match=says):
        parse_key_set(data)


def test_keys_that_cannot_be_used_are_passed_over() -> None:
    (key,) = keys({"kty": "oct", "k": "c2VjcmV0"}, jwk("first"), jwk("short", n="AQAB"))
    assert key.id == "first"


def test_keys_that_the_library_has_no_support_for_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ed25519's are where OpenSSL is restricted."""
    real = PyJWK.__init__

    def init(self: PyJWK, key: dict[str, Any], algorithm: str | None = None) -> None:
        if key["kty"] == "OKP":
            raise UnsupportedAlgorithm("Ed25519")
        real(self, key, algorithm)

    monkeypatch.setattr(PyJWK, "__init__", init)
    (key,) = keys({"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": "curve"}, jwk("first"))
    assert key.id == "first"


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=3)


@given(st.dictionaries(st.sampled_from(["sub", "iss", "aud", "iat", "exp", "nbf", "scope"]), JSON))
def test_any_claims_are_taken_or_refused(changes: dict[str, Any]) -> None:
    try:
        check_claims(claims(NOW_S) | changes, RULES, NOW)
    except InvalidTokenError as error:
        assert str(error)


@given(st.dictionaries(st.sampled_from(["kty", "n", "e", "crv", "x", "y", "alg", "use", "key_ops", "kid"]), JSON))
def test_any_keys_are_taken_or_passed_over(changes: dict[str, Any]) -> None:
    assert keys(jwk("first"), jwk("second") | changes, jwk("third", "ES256") | changes)[0].id == "first"


GOOD = signed(now=NOW_S)


@given(
    st.text(alphabet="abcdefgABCDEFG0123456789-_.=~+/", max_size=60)
    | st.builds(lambda header: f"{part(header)}.e30.AAAA", JSON)
    | st.builds(lambda at, with_: GOOD[:at] + with_ + GOOD[at + 1 :], st.integers(0, len(GOOD)), st.text(max_size=2))
)
def test_any_text_is_taken_or_refused(token: str) -> None:
    try:
        found = check_token(token, KEYS, RULES, NOW)
    except InvalidTokenError as error:
        assert len(str(error)) < 300
    else:
        assert found.name == "alice"


KEYS = keys()
