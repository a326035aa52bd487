"""Java's keystores and truststores: PKCS#12 files are opened, JKS ones refused with the command that converts them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kohort.broker.config.errors import ConfigError
from kohort.extras import SECURITY, MissingExtraError, require

_JKS = b"\xfe\xed\xfe\xed"
_DER = b"\x30"


class Store(NamedTuple):
    """What a store holds, as PEM.

    Attributes:
        key: the private key, not encrypted; "" without one.
        certificates: that of the key first.
    """

    key: str
    certificates: str


def opened_store(path: Path, password: str, keys: str) -> Store | None:
    """Opens a PKCS#12 file; returns None for a file of another format, which should be PEM.

    Args:
        keys: the beginning of the keys that it is configured by: "ssl.keystore" or "ssl.truststore".

    Raises:
        ConfigError: it is a JKS file, or broken, or has another password.
        OSError: it can't be read.
    """
    data = path.read_bytes()
    if data.startswith(_JKS):
        raise ConfigError(
            f"{keys}.location={path} is a JKS store; PKCS12 or PEM is needed: keytool -importkeystore "
            f"-srckeystore {path.name} -destkeystore {path.stem}.p12 -deststoretype PKCS12"
        )
    return _pkcs12(data, password, path, keys) if data.startswith(_DER) else None


def _pkcs12(data: bytes, password: str, path: Path, keys: str) -> Store:
    try:
        require("security", f"{keys}.location={path}, a PKCS12 store,", SECURITY)
    except MissingExtraError as error:
        raise ConfigError(f"{error}; or make PEM of it: openssl pkcs12 -in {path.name} -out {path.stem}.pem") from None
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password else None)
        key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) if store.key else b""
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{keys}.location={path}: is {keys}.password right? {error}") from None
    certificates = [each.certificate for each in (store.cert, *store.additional_certs) if each is not None]
    return Store(key.decode(), b"".join(each.public_bytes(Encoding.PEM) for each in certificates).decode())
