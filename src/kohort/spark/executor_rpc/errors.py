"""What can go wrong on the line."""

from __future__ import annotations


class RpcError(Exception):
    """The line between an executor and the driver: it was closed, misused, or the other side could not answer."""
