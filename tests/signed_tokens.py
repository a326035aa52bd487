"""An issuer of signed tokens, for tests: its keys, the set of keys that it publishes, and tokens."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "kafka"
ISSUER = "https://issuer.example"


def private_key(name: str, kind: str = "RS256") -> Any:
    """A key by its name, made once; that of all algorithms of RSA is the same."""
    return _made(name, "RSA" if kind.startswith(("RS", "PS")) else kind)


@cache
def _made(name: str, kind: str) -> Any:
    if kind == "RSA":
        return rsa.generate_private_key(65_537, 2048)
    curves = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
    return ed25519.Ed25519PrivateKey.generate() if kind == "EdDSA" else ec.generate_private_key(curves[kind]())


def public_pem(name: str = "first", kind: str = "RS256") -> bytes:
    """The public half of a key, which everybody knows."""
    return private_key(name, kind).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(name: str = "first", kind: str = "RS256", **changes: Any) -> dict[str, Any]:
    """A public key as the issuer publishes it."""
    of = OKPAlgorithm if kind == "EdDSA" else ECAlgorithm if kind.startswith("ES") else RSAAlgorithm
    made = of.to_jwk(private_key(name, kind).public_key(), as_dict=True)
    return made | {"kid": name, "use": "sig"} | changes


def key_set(*names: str) -> bytes:
    """What the issuer publishes."""
    return json.dumps({"keys": [jwk(name) for name in names or ("first",)]}).encode()


def claims(now: float | None = None, **changes: Any) -> dict[str, Any]:
    """What a token says that is good for an hour; None leaves a claim out."""
    issued = int(time.time() if now is None else now)
    said = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": issued, "exp": issued + 3600, "scope": "all"}
    return {name: value for name, value in (said | changes).items() if value is not None}


def signed(name: str = "first", kind: str = "RS256", headers: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """A token."""
    named = {"kid": name, **(headers or {})}
    given = {header: value for header, value in named.items() if value is not None}
    return jwt.encode(claims(**changes), private_key(name, kind), kind, given)


def write_key_set(path: Path, *names: str) -> str:
    """Publishes the keys in a file; returns its URL."""
    new = path.with_suffix(".new")
    new.write_bytes(key_set(*names))
    new.rename(path)
    return path.as_uri()
