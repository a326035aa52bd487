"""The TLS context of a client."""

from __future__ import annotations

import ssl

from kohort.client.config import ClientConfig
from kohort.client.errors import ConfigError
from kohort.trusted_tls import trusting

__all__ = ["tls_context"]


def tls_context(config: ClientConfig) -> ssl.SSLContext:
    """Returns the context: TLS 1.2 or newer, only with brokers whose certificate is trusted.

    Raises:
        ConfigError: files that can't be read, aren't PEM, or don't belong together.
    """
    if config.ssl_context is not None:
        return config.ssl_context
    try:
        context = trusting(config.ssl_cafile)
    except OSError as error:
        raise ConfigError(f"ssl_cafile={str(config.ssl_cafile)!r}: not a PEM file of certificates: {error}") from error
    context.check_hostname = config.ssl_check_hostname
    if config.ssl_certfile is not None:
        try:
            # Without a password it's empty, or OpenSSL would ask for one on the terminal.
            context.load_cert_chain(config.ssl_certfile, config.ssl_keyfile, config.ssl_password or "")
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"ssl_certfile={str(config.ssl_certfile)!r}: no PEM certificate with its key, "
                f"or ssl_password is wrong: {error}"
            ) from error
    return context
