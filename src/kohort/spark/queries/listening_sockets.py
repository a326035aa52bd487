"""Listening on the address that others reach an instance by, be it one of this machine or not."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

__all__ = ["listening_sockets"]

log = logging.getLogger(__name__)


async def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on the addresses of a host; on all of the machine's, if it has none of these.

    The machine is asked by binding: what an event loop's error says of an address that isn't the machine's depends on
    the loop and on the version of Python.

    Args:
        host: a name or an address; none is all addresses.
        port: on each address; 0 takes a free one, and then there is but one socket.

    Raises:
        OSError: the port is in use, or may not be listened on.
    """
    if not host:
        return [_everywhere(port)]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        found = []
    sockets: list[socket.socket] = []
    try:
        for family, *_, address in dict.fromkeys(found):  # names may stand for an address twice
            try:
                sockets.append(socket.create_server(address, family=family))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
            if sockets and port == 0:
                break  # another address would get another port
        if not sockets:
            log.info("%s is no address of this machine: listening on all of them", host)
            sockets.append(_everywhere(port))
    except BaseException:
        for each in sockets:
            each.close()
        raise
    return sockets


def _everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
