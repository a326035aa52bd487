"""What can go wrong in the RPC."""

from __future__ import annotations


class RpcError(Exception):
    """A connection between an executor and the driver was closed or misused, or the other side could not answer."""
