"""X.509 certificates, signed by an authority of our own. Needs the extra `security`."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    Key: TypeAlias = EllipticCurvePrivateKey | RSAPrivateKey

__all__ = ["Authority", "Period", "certificate_pem", "key_pem", "new_key", "signed"]

_UNUSED: Final = (
    "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign", "encipher_only",
    "decipher_only",
)  # fmt: skip


class Authority(NamedTuple):
    """What signs certificates.

    Attributes:
        name: its common name, or all of its name.
    """

    name: str | x509.Name
    key: Key


class Period(NamedTuple):
    """When a certificate counts; times have a time zone."""

    begin: datetime.datetime
    end: datetime.datetime


def new_key() -> EllipticCurvePrivateKey:
    """Returns a new private key: P-256, which every client knows."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def signed(
    by: Authority,
    period: Period,
    *,
    name: str | x509.Name,
    key: Key,
    uses: Collection[x509.ObjectIdentifier] = (),
    hosts: Iterable[str] = (),
) -> x509.Certificate:
    """Returns a certificate of a key.

    Args:
        name: the name of the key's owner, as the authority's.
        uses: what it is for; without any it is of an authority.
        hosts: names and addresses that it counts for.

    Raises:
        ValueError: a host's name that isn't ASCII.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    def called(text: str | x509.Name) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) if isinstance(text, str) else text

    authority = not uses
    usage = dict.fromkeys(_UNUSED, False)
    builder = (
        x509.CertificateBuilder()
        .subject_name(called(name))
        .issuer_name(called(by.name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(period.begin)
        .not_valid_after(period.end)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=not authority, key_cert_sign=authority, **usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), critical=False)
    )
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    if names := [_general_name(host) for host in hosts]:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(by.key, hashes.SHA256())


def certificate_pem(certificate: x509.Certificate) -> str:
    """Returns a certificate as PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def key_pem(key: Key) -> str:
    """Returns a private key as PEM (PKCS#8), not encrypted."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
