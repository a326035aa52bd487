"""Signed tokens (JWT, RFC 7519): whether one was made by whom we trust, for us, and is still good.

Only signatures by private keys count, whose public halves are known (JWKS, RFC 7517): the token says which key it was
signed by, but which algorithms that key may be used with is the key's matter. So neither tokens without a signature
nor ones that take a public key for a shared secret get in.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kohort.security.sasl.oauthbearer import InvalidTokenError, ValidToken

_OF_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
_OF_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

_BASE64: Final = re.compile(r"[-_A-Za-z0-9]*+")

_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
"""What of a key is looked at; it may be a private one by mistake."""

_LEAST_RSA_BITS: Final = 2048

_LONGEST_HEADER: Final = 16_384
"""Characters of a token's header, which is read before its signature is checked."""

_LAST_SECOND: Final = 2**53
"""Dates are less, in seconds since 1970; so that ms fit into 64 bits."""

_TRIED: Final = 8
"""Keys that a token is tried with that doesn't name its own."""


class KeySetError(ValueError):
    """What should be a set of keys isn't one, or has no key that a token could be signed by."""


class UnknownKeyError(InvalidTokenError):
    """A token is signed by a key that isn't known; it may have been made since the keys were read."""


class VerificationKey(NamedTuple):
    """A public key.

    Attributes:
        id: what tokens name it by; "" if they can't.
        algorithms: those it may be used with.
        key: as PyJWT takes it.
    """

    id: str
    algorithms: Sequence[str]
    key: Any


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What tokens must say.

    Attributes:
        audiences: of which a token must name one; none for any.
        issuer: who must have made it; "" for anyone.
        skew_seconds: how much the issuer's clock may differ.
        scope_claim, sub_claim: the claims with scopes and with the client's name.
    """

    audiences: frozenset[str] = frozenset()
    issuer: str = ""
    skew_seconds: int = 30
    scope_claim: str = "scope"
    sub_claim: str = "sub"


def parse_key_set(data: bytes) -> list[VerificationKey]:
    """Reads a JWKS; keys of other kinds and uses are passed over.

    Raises:
        KeySetError: see there.
    """
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise KeySetError(f"it isn't JSON: {error}") from None
    listed = parsed.get("keys") if isinstance(parsed, dict) else None
    if not isinstance(listed, list):
        raise KeySetError('it isn\'t a JWKS, which is {"keys": […]}')
    found = [key for each in listed if (key := _key(each)) is not None]
    if not found:
        raise KeySetError(f"none of its {len(listed)} keys can sign: RSA of 2048 bits or more, EC, Ed25519")
    return found


def _key(jwk: object) -> VerificationKey | None:
    from cryptography.exceptions import UnsupportedAlgorithm
    from jwt import PyJWK, PyJWTError

    if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig" or "verify" not in _operations(jwk):
        return None
    kind, curve = jwk.get("kty"), jwk.get("crv")
    algorithms: tuple[str, ...] = ()
    if kind == "RSA":
        algorithms = _OF_RSA
    elif kind == ("OKP" if curve == "Ed25519" else "EC") and isinstance(curve, str) and curve in _OF_CURVES:
        algorithms = (_OF_CURVES[curve],)
    if "alg" in jwk:
        algorithms = tuple(each for each in algorithms if each == jwk["alg"])
    if not algorithms:
        return None
    try:
        key = PyJWK({name: jwk[name] for name in _PUBLIC if name in jwk}, algorithms[0]).key
    except (PyJWTError, UnsupportedAlgorithm, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
    if kind == "RSA" and key.key_size < _LEAST_RSA_BITS:
        return None
    key_id = jwk.get("kid")
    return VerificationKey(key_id if isinstance(key_id, str) else "", algorithms, key)


def _operations(jwk: Mapping[str, Any]) -> Sequence[object]:
    operations = jwk.get("key_ops", ["verify"])
    return operations if isinstance(operations, list) else ()


def check_token(token: str, keys: Sequence[VerificationKey], rules: TokenRules, now: int) -> ValidToken:
    """Checks a token's signature, and what it says.

    Args:
        now: ms since 1970.

    Raises:
        InvalidTokenError: it isn't taken.
        UnknownKeyError: its key isn't among those.
    """
    return check_claims(_signed_claims(token, keys), rules, now)


def _signed_claims(token: str, keys: Sequence[VerificationKey]) -> dict[str, Any]:
    """What a token says, if one of the keys has signed it."""
    from jwt import PyJWTError, get_algorithm_by_name

    parts = token.split(".", 3)
    if len(parts) != 3 or len(parts[0]) > _LONGEST_HEADER:
        raise InvalidTokenError("it isn't a signed token (JWT)")
    algorithm, key_id = _algorithm_and_key(parts[0])
    suited = [each for each in keys if algorithm in each.algorithms and key_id in (None, each.id)]
    if not suited:
        named = "it names no key" if key_id is None else f"key {_shown(key_id)}"
        raise UnknownKeyError(f"none of the known keys is for it: {named}, algorithm {_shown(algorithm)}")
    signed, signature = f"{parts[0]}.{parts[1]}".encode(), _decoded(parts[2])
    verifier = get_algorithm_by_name(algorithm)
    for each in suited[:_TRIED]:
        try:
            good = verifier.verify(signed, each.key, signature)
        except (PyJWTError, ValueError, TypeError):
            good = False
        if good:
            return _object(parts[1], "its content")
    raise InvalidTokenError("its signature is wrong")


def _algorithm_and_key(encoded: str) -> tuple[str, str | None]:
    """The algorithm a token says it is signed with, and by which key; None if it doesn't say that."""
    header = _object(encoded, "its header")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None):
        raise InvalidTokenError("its header doesn't name an algorithm and a key")
    if "crit" in header:
        raise InvalidTokenError("its header has something that must be understood, and isn't (crit)")
    return algorithm, key_id


def _decoded(encoded: str) -> bytes:
    """What is in a part of a token."""
    if not _BASE64.fullmatch(encoded):
        raise InvalidTokenError("it isn't Base64, as tokens have it")
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        raise InvalidTokenError("it isn't Base64, as tokens have it") from None


def _object(encoded: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(_decoded(encoded))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidTokenError(f"{what} isn't a JSON object")
    return value


def check_claims(claims: Mapping[str, Any], rules: TokenRules, now: int) -> ValidToken:
    """Checks what a token says; see `check_token`."""
    expires, issued, not_before = _date(claims, "exp"), _date(claims, "iat"), _date(claims, "nbf")
    if expires is None or issued is None:
        raise InvalidTokenError(f"it has no {'exp' if expires is None else 'iat'}")
    skew = rules.skew_seconds
    if now // 1000 - skew >= expires:
        raise InvalidTokenError(f"it has expired {now // 1000 - expires} s ago")
    if not_before is not None and now // 1000 + skew < not_before:
        raise InvalidTokenError(f"it is good in {not_before - now // 1000} s only (nbf)")
    if expires < max(issued, not_before or 0):
        raise InvalidTokenError("it expires before it is issued or good")
    if rules.issuer and claims.get("iss") != rules.issuer:
        raise InvalidTokenError(f"its issuer (iss) is {_shown(claims.get('iss'))}, not {rules.issuer}")
    if rules.audiences and rules.audiences.isdisjoint(_texts(claims.get("aud"))):
        raise InvalidTokenError(f"its audience (aud) is {_shown(claims.get('aud'))}")
    _check_scopes(claims.get(rules.scope_claim), rules.scope_claim)
    name = claims.get(rules.sub_claim)
    if not isinstance(name, str) or not name.strip():
        raise InvalidTokenError(f"its claim {rules.sub_claim} isn't the name of a client")
    return ValidToken(name.strip(), expires * 1000)


def _date(claims: Mapping[str, Any], name: str) -> int | None:
    """A date in s since 1970, without the part that is less than one; None if it isn't there."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LAST_SECOND < value < _LAST_SECOND:
        raise InvalidTokenError(f"its {name} isn't a date")
    return int(value)


def _texts(value: object) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _check_scopes(value: object, claim: str) -> None:
    """Refuses what Kafka refuses: a scope that is empty, or there twice."""
    if not isinstance(value, str | list):
        return
    scopes = value if isinstance(value, list) else [value]
    texts = [each.strip() for each in _texts(scopes)]
    if len(texts) < len(scopes) or not all(texts) or len(set(texts)) < len(texts):
        raise InvalidTokenError(f"its claim {claim} has scopes that are empty, or there twice")


def _shown(value: object) -> str:
    """A part of what the client sent, for the log."""
    return repr(value)[:100]
