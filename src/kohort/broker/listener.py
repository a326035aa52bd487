"""One listener: an address where connections come in, and what they have to show."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

from kohort.broker.audit import Audit
from kohort.broker.config.errors import ConfigError
from kohort.broker.config.listeners import Endpoint, ListenerConfig, SecurityProtocol
from kohort.broker.config.settings import Settings
from kohort.broker.newcomers import Newcomers
from kohort.broker.sasl_mechanisms import SaslSources, sasl_mechanisms
from kohort.broker.tls import TlsContext, peer_name, tls_settings
from kohort.broker.tls_acceptor import Admit, TlsAcceptor
from kohort.security.distinguished_names import PrincipalMapper
from kohort.security.sasl.authenticator import Authenticator

BACKLOG: Final = 1024
"""Connections that the kernel queues until they are accepted."""

ANONYMOUS: Final = "User:ANONYMOUS"


class NoPrincipalError(Exception):
    """A client certificate that no rule of `ssl.principal.mapping.rules` makes a name of."""


class Listener:
    """One listener.

    Args:
        settings: of the broker.
        sources: where SASL's mechanisms have from what isn't configured.

    Attributes:
        advertised: where clients are told to connect to; its port is known once it is open.
        tls: its certificates; None without TLS.

    Raises:
        ConfigError: it can't be had as it is configured.
    """

    def __init__(self, config: ListenerConfig, settings: Settings, sources: SaslSources) -> None:
        own = settings.for_listener(config.name)
        self._config = config
        self._open: asyncio.Server | None = None
        self._acceptor: TlsAcceptor | None = None
        self.advertised = config.advertised(config.endpoint.port)
        self.tls = _tls(config, own) if config.protocol.tls else None
        self._sasl = sasl_mechanisms(settings, config.name, sources) if config.protocol.sasl else None
        self._names = PrincipalMapper(own.text("ssl.principal.mapping.rules"))

    @property
    def name(self) -> str:
        return self._config.name

    @property
    def protocol(self) -> SecurityProtocol:
        return self._config.protocol

    @property
    def host(self) -> str:
        return self._config.endpoint.host

    @property
    def port(self) -> int:
        """Where it listens; 0 before it is open, if it takes a free one."""
        return self._config.endpoint.port if self._open is None else int(self._open.sockets[0].getsockname()[1])

    @property
    def guesses_its_name(self) -> bool:
        """Whether clients are told this machine's name, for want of a better one."""
        return self._config.advertised_as is None and self._config.endpoint.everywhere

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return Endpoint(self.host, self.port)

    async def prepare(self) -> None:
        """Gets what it needs from elsewhere, before it is opened: the keys of OAUTHBEARER's tokens.

        Raises:
            ConfigError: it can't be had.
        """
        if self._sasl is not None and self._sasl.signed_tokens is not None:
            await self._sasl.signed_tokens.jwks.start()

    async def open(
        self,
        make_connection: Callable[[], asyncio.Protocol],
        admit: Admit,
        leave: Callable[[str], None],
        newcomers: Newcomers,
        audit: Audit,
    ) -> None:
        """Takes the address; connections wait until `serve`.

        Args:
            admit, leave, newcomers, audit: see `TlsAcceptor`; connections without TLS don't use them.

        Raises:
            OSError: the address is in use, or can't be used.
        """
        self._open = await asyncio.get_running_loop().create_server(
            make_connection, self.host, self._config.endpoint.port, backlog=BACKLOG, start_serving=False
        )
        self.advertised = self._config.advertised(self.port)
        if self.tls is not None:
            sockets = [socket.socket(fileno=os.dup(each.fileno())) for each in self._open.sockets]
            self._acceptor = TlsAcceptor(
                sockets, self._context, make_connection, admit, leave, newcomers=newcomers, audit=audit
            )

    async def serve(self) -> None:
        """Accepts connections."""
        assert self._open is not None
        if self._acceptor is not None:
            self._acceptor.start(BACKLOG)
        else:
            await self._open.start_serving()

    def close(self) -> None:
        """Accepts no more connections."""
        if self._acceptor is not None:
            self._acceptor.close()
        if self._open is not None:
            self._open.close()
        if self._sasl is not None and self._sasl.signed_tokens is not None:
            self._sasl.signed_tokens.jwks.stop()

    def _context(self) -> ssl.SSLContext:
        assert self.tls is not None
        return self.tls.context

    def authenticator(self) -> Authenticator | None:
        """What a new connection authenticates by; None without SASL."""
        return None if self._sasl is None else Authenticator(self._sasl.settings)

    def principal(self, connection: ssl.SSLObject) -> str:
        """Who a client is by its certificate; ANONYMOUS without one, and where SASL tells.

        Raises:
            NoPrincipalError: it has a certificate, but no rule makes a name of it.
        """
        distinguished = None if self.protocol.sasl else peer_name(connection)
        if distinguished is None:
            return ANONYMOUS
        name = self._names.name(distinguished)
        if name is None:
            raise NoPrincipalError(f"no rule of ssl.principal.mapping.rules is for {distinguished}")
        return f"User:{name}"


def _tls(config: ListenerConfig, own: Settings) -> TlsContext:
    try:
        return TlsContext(tls_settings(own, client_auth=_client_auth(config, own)), config.name)
    except ConfigError as error:
        raise ConfigError(f"listener {config.name}: {error}") from None


def _client_auth(config: ListenerConfig, own: Settings) -> str:
    """Whether clients need certificates; on SASL_SSL only where that is set for the listener itself, as in Kafka."""
    prefixed = f"listener.name.{config.name.lower()}.ssl.client.auth" in own.static
    return own.text("ssl.client.auth") if prefixed or not config.protocol.sasl else "none"
