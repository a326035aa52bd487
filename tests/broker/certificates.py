"""Certificates for tests: of servers in files, of clients in contexts."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme

CA = trustme.CA()


def pem(certificate: trustme.LeafCert) -> str:
    """A private key and its certificates, in one text."""
    return certificate.private_key_pem.bytes().decode() + "".join(
        each.bytes().decode() for each in certificate.cert_chain_pems
    )


def write_stores(directory: Path) -> tuple[Path, Path]:
    """Writes the keystore of localhost and the truststore, and returns their paths."""
    keystore, truststore = directory / "server.pem", directory / "ca.pem"
    keystore.write_text(pem(CA.issue_cert("localhost")))
    CA.cert_pem.write_to_path(truststore)
    return keystore, truststore


def trusting(*, own: str | None = None) -> ssl.SSLContext:
    """The context of a client that trusts the CA, with a certificate of its own or without."""
    client = ssl.create_default_context()
    CA.configure_trust(client)
    if own is not None:
        CA.issue_cert(own, common_name=own, organization_name="Example").configure_cert(client)
    return client
