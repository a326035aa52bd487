"""TLS of the RPC: certificates made for a run, and how executors get theirs.

The driver makes an authority, signs a certificate for itself and one for executors, and forgets the authority's key: so
nobody else has one, each side verifies the other, and an executor's doesn't serve to pose as the driver.

Executors get their key with the functions that Spark sends them. Not by configuration, which is in Spark's pages and
event logs, nor by a local property: event logs have those in plain text, whatever they are called. Where Spark has a
secret of its own (`spark.authenticate.secret`) that Python workers find in their environment, the key is sealed with
it: what Spark sends, keeps in memory and spills to disks is of no use to those who haven't the secret. Elsewhere (YARN
and Kubernetes, where Spark makes a secret that Python can't read) it is as safe as Spark makes its own connections.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from kohort.certificates import Authority, Period, certificate_pem, key_pem, new_key, signed
from kohort.spark.executor_rpc.errors import RpcError

if TYPE_CHECKING:
    from cryptography.x509 import ObjectIdentifier

    from kohort.certificates import Key

ENVIRONMENT: Final = "_SPARK_AUTH_SECRET"
"""Where Spark's standalone workers put `spark.authenticate.secret` for executors, whose Python workers inherit it."""

_SEALING_MASTERS: Final = ("spark://", "local-cluster[")
_DRIVER: Final = "driver.kohort.internal"
_CLEAR: Final = b"c"
_SEALED: Final = b"s"
_PURPOSE: Final = b"kohort executor rpc"
_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_CLOCKS_DIFFER_BY: Final = datetime.timedelta(days=1)
_LONGEST_RUN: Final = datetime.timedelta(days=3650)


class _ExecutorsPart(msgspec.Struct, frozen=True):
    """What executors need, in PEM."""

    authority: str
    certificate: str
    key: str


@dataclass(frozen=True)
class DriverTls:
    """The driver's part.

    Attributes:
        context: of the driver's socket.
        handover: for executors, `executor_context`.
    """

    context: ssl.SSLContext
    handover: bytes = field(repr=False)


def spark_secret(conf: Mapping[str, str], environment: Mapping[str, str]) -> str | None:
    """Spark's own secret, if executors' Python workers have it, too."""
    if conf.get("spark.authenticate", "false").lower() != "true":
        return None
    if not conf.get("spark.master", "").startswith(_SEALING_MASTERS):
        return None
    return environment.get(ENVIRONMENT) or conf.get("spark.authenticate.secret")


def driver_tls(secret: str | None, now: datetime.datetime) -> DriverTls:
    """Makes the certificates of a run.

    Args:
        secret: seals the executors' part; None leaves that to Spark's connections.
        now: with a time zone.
    """
    from cryptography.x509.oid import ExtendedKeyUsageOID

    authority = Authority("Kohort run", new_key())
    period = Period(now - _CLOCKS_DIFFER_BY, now + _LONGEST_RUN)
    own, theirs = new_key(), new_key()

    def certificate(name: str, key: Key, *uses: ObjectIdentifier) -> str:
        return certificate_pem(signed(authority, period, name=name, key=key, uses=uses, hosts=[name] if uses else ()))

    root = certificate("Kohort run", authority.key)
    driver = certificate(_DRIVER, own, ExtendedKeyUsageOID.SERVER_AUTH)
    executor = certificate("executor.kohort.internal", theirs, ExtendedKeyUsageOID.CLIENT_AUTH)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0
    _load(context, root, driver, key_pem(own))
    part = msgspec.msgpack.encode(_ExecutorsPart(root, executor, key_pem(theirs)))
    return DriverTls(context, _CLEAR + part if secret is None else _SEALED + _seal(part, secret))


@lru_cache(maxsize=4)
def executor_context(handover: bytes) -> ssl.SSLContext:
    """The context with which an executor connects to the driver, which is called `_DRIVER` in its certificate.

    Raises:
        RpcError: it is sealed with a secret that this process hasn't.
    """
    kind, part = handover[:1], handover[1:]
    if kind == _SEALED:
        part = _open(part, os.environ.get(ENVIRONMENT))
    theirs = msgspec.msgpack.decode(part, type=_ExecutorsPart)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, theirs.authority, theirs.certificate, theirs.key)
    return context


def connected(context: ssl.SSLContext, connection: socket.socket) -> ssl.SSLSocket:
    """The executor's end of a connection, both sides verified.

    Raises:
        OSError: one doesn't accept the other.
    """
    return context.wrap_socket(connection, server_hostname=_DRIVER)


def _load(context: ssl.SSLContext, authority: str, certificate: str, key: str) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=authority)
    with _readable(certificate) as chain, _readable(key) as private:  # never a file on a disk
        context.load_cert_chain(chain, private)


@contextlib.contextmanager
def _readable(text: str) -> Iterator[str]:
    """A path that a short text can be read from, once."""
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "w") as pipe:
            pipe.write(text)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)


def _key(secret: str, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(hashes.SHA256(), 32, salt, _PURPOSE).derive(secret.encode())


def _seal(part: bytes, secret: str) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
    return salt + nonce + AESGCM(_key(secret, salt)).encrypt(nonce, part, _PURPOSE)


def _open(sealed: bytes, secret: str | None) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if secret is None:
        raise RpcError(
            f"this executor has no {ENVIRONMENT} in its environment, where Spark's workers put "
            "spark.authenticate.secret"
        )
    salt, nonce = sealed[:_SALT_BYTES], sealed[_SALT_BYTES : _SALT_BYTES + _NONCE_BYTES]
    try:
        return AESGCM(_key(secret, salt)).decrypt(nonce, sealed[_SALT_BYTES + _NONCE_BYTES :], _PURPOSE)
    except InvalidTag:
        raise RpcError("this executor's spark.authenticate.secret isn't the driver's") from None
