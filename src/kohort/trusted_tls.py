"""TLS that trusts the authorities of a file, and these alone."""

from __future__ import annotations

import ssl
from pathlib import Path


def trusting(cafile: str | Path | None, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> ssl.SSLContext:
    """Returns a context, of TLS 1.2 or newer.

    Args:
        cafile: PEM file of the certificates that the other side's must be signed by; None for the system's authorities,
            if it is a server's.
        purpose: whose certificates are checked.

    Raises:
        OSError: the file can't be read, or isn't PEM (`ssl.SSLError`).
    """
    # Python takes "" for no file, and so for all public authorities; an empty path is none that can be read.
    context = ssl.create_default_context(purpose, cafile=None if cafile is None else Path(cafile))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
