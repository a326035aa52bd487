"""Certificates for tests of TLS, as files in PEM."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Certificates:
    """An authority, and a server's certificate for localhost and 127.0.0.1.

    Attributes:
        ca: the file of the authority's certificate.
        cert, key: those of the server's.
    """

    def __init__(self, directory: Path) -> None:
        self._authority = trustme.CA()
        self.ca, self.cert, self.key = (directory / name for name in ("ca.pem", "cert.pem", "key.pem"))
        self._authority.cert_pem.write_to_path(self.ca)
        leaf = self._authority.issue_cert("localhost", "127.0.0.1")
        leaf.private_key_pem.write_to_path(self.key)
        for each in leaf.cert_chain_pems:
            each.write_to_path(self.cert, append=True)

    def client(self, *, own: bool = False, foreign: bool = False) -> ssl.SSLContext:
        """A client that trusts the server; with a certificate of its own, which may be another authority's."""
        context = ssl.create_default_context(cafile=self.ca)
        if own or foreign:
            (trustme.CA() if foreign else self._authority).issue_cert("client").configure_cert(context)
        return context
