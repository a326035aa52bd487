"""Listens on the address where others reach an instance, even if it isn't one of this machine."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket

log = logging.getLogger(__name__)


async def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """Returns sockets that listen on the addresses of a host; on all addresses, if this machine has none of the host's.

    Tries to bind each: the error of an event loop for an address that isn't the machine's depends on the loop and on
    the version of Python.

    Args:
        host: a name or an address; "" stands for all addresses.
        port: on each address; 0 takes a free one, on one address only.

    Raises:
        OSError: the port is in use, or may not be listened on.
    """
    if not host:
        return [_on_all_addresses(port)]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror:
        found = []
    sockets: list[socket.socket] = []
    try:
        for family, *_, address in dict.fromkeys(found):  # a name may resolve to an address twice
            try:
                sockets.append(socket.create_server(address, family=family))
            except OSError as error:
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
            if sockets and port == 0:
                break  # another address would get another port
        if not sockets:
            log.info("%s isn't an address of this machine: listening on all addresses", host)
            sockets.append(_on_all_addresses(port))
    except BaseException:
        for each in sockets:
            each.close()
        raise
    return sockets


def _on_all_addresses(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))
