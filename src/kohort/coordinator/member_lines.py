"""The log's lines of members that come and go: alike in groups of every type, so that one search finds them all."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def tell_joined(group_id: str, member_id: str, instance_id: str | None, client_id: str, host: str) -> None:
    """A member that wasn't in the group is now."""
    log.info(
        "member joins group=%s member=%s instance=%s client=%s host=%s",
        group_id, member_id, instance_id, client_id, _address(host),
    )  # fmt: skip


def tell_removed(group_id: str, member_id: str, client_id: str, host: str, why: str) -> None:
    """A member isn't in the group any more: it left, or was fenced."""
    log.info(
        "member removed group=%s member=%s client=%s host=%s because=%s",
        group_id, member_id, client_id, _address(host), why,
    )  # fmt: skip


def _address(host: str) -> str:
    """An address as people write it: in stored records it is as Java's, after a slash."""
    return host.removeprefix("/")
