"""Who didn't get in, and what was denied to whom: a line each in the log, within bounds, and a count of all."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final

from kohort.broker.few_lines import FewLines
from kohort.protocol.access_types import Operation, ResourceType
from kohort.protocol.errors import shown

__all__ = ["LINES_OF_CLIENTS", "LINES_OF_STRANGERS", "Audit"]

LINES_OF_CLIENTS: Final = (200, 2000)
"""Denials that are written in ten seconds: of one address, and of all."""

LINES_OF_STRANGERS: Final = (20, 200)
"""Lines about connections that don't get in, or are closed; as above."""

_FAILED: Final = "a request failed peer=%s:%d"

_LONGEST: Final = 300
"""Characters of a name in the log; topics have 249 at most."""

_authorizer: Final = logging.getLogger("kohort.authorizer")
_authentication: Final = logging.getLogger("kohort.broker.authentication")
_connection: Final = logging.getLogger("kohort.broker.connection")
_tls: Final = logging.getLogger("kohort.broker.tls")


class Audit:
    """Tells and counts.

    A line that says how many weren't written before it has them as `untold`.

    Args:
        clock: in seconds.

    Attributes:
        authentications, failed_authentications: by mechanism.
        failed_handshakes: of TLS.
        refused: connections.
        denials: by API.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clients = FewLines(*LINES_OF_CLIENTS, clock)
        self._strangers = FewLines(*LINES_OF_STRANGERS, clock)
        self.authentications: Counter[str] = Counter()
        self.failed_authentications: Counter[str] = Counter()
        self.failed_handshakes = 0
        self.refused = 0
        self.denials: Counter[str] = Counter()

    def decided(
        self, client: tuple[str, str], operation: Operation, kind: ResourceType, name: str, api: str, *, allowed: bool
    ) -> None:
        """Tells what was asked for: of a denial always, of a permission at debug.

        Args:
            client: its principal and address.
        """
        principal, host = client
        if not allowed:
            self.denials[api] += 1
        level = logging.DEBUG if allowed else logging.INFO
        if not _authorizer.isEnabledFor(level):
            return
        template = "%s principal=%s host=%s operation=%s resource=%s:%s api=%s"
        args = (
            "allowed" if allowed else "denied",
            shown(principal, _LONGEST),
            host,
            operation.name,
            kind.name,
            shown(name, _LONGEST),
            api,
        )
        if allowed:
            _authorizer.debug(template, *args)
        else:
            _write(self._clients, _authorizer, level, host, args, template, *args)

    def authenticated(self, mechanism: str) -> None:
        self.authentications[mechanism] += 1

    def authentication_failed(self, host: str, port: int, mechanism: str, reason: object) -> None:
        """Tells of somebody who isn't who it says.

        Args:
            mechanism: one that is enabled, or "unknown".
        """
        self.failed_authentications[mechanism] += 1
        template = "authentication failed peer=%s:%d mechanism=%s reason=%s"
        self._stranger(_authentication, logging.INFO, host, template, host, port, mechanism, reason)

    def handshake_failed(self, host: str, port: int, reason: str) -> None:
        self.failed_handshakes += 1
        self._stranger(_tls, logging.INFO, host, "TLS handshake failed peer=%s:%d reason=%s", host, port, reason)

    def connection_refused(self, host: str, port: int, reason: str) -> None:
        self.refused += 1
        template = "connection refused peer=%s:%d reason=%s"
        self._stranger(_connection, logging.WARNING, host, template, host, port, reason)

    def connection_closed(self, host: str, port: int, reason: object) -> None:
        """Tells of a client that has sent what can't be answered, or doesn't say who it is."""
        template = "connection closed peer=%s:%d reason=%s"
        self._stranger(_connection, logging.WARNING, host, template, host, port, reason)

    def request_failed(self, host: str, port: int, error: Exception) -> None:
        """Tells of a fault of the broker, with the traceback."""
        kind = ("a request failed", host, type(error), str(error))
        _write(self._strangers, _connection, logging.ERROR, host, kind, _FAILED, host, port, error=error)

    def _stranger(self, logger: logging.Logger, level: int, host: str, template: str, *args: object) -> None:
        kind = (template, host, str(args[-1]))  # whatever its port
        _write(self._strangers, logger, level, host, kind, template, *args)


def _write(
    few: FewLines,
    logger: logging.Logger,
    level: int,
    host: str,
    kind: Hashable,
    template: str,
    *args: object,
    error: Exception | None = None,
) -> None:
    untold = few.take(host, kind)
    if untold is None:
        return
    if untold:
        logger.log(level, template + " untold=%d", *args, untold, exc_info=error)
    else:
        logger.log(level, template, *args, exc_info=error)
