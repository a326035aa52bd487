"""What a shell completes: topics, groups and applications of the cluster, and words that an option may have.

The cluster is the one that the line names so far. One that doesn't answer at once completes nothing, without a word.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from kohort.client.admin import Admin

_PATIENCE_S: Final = 1.5
"""How long somebody waits who has pressed Tab."""


def words(*known: str) -> Callable[[str], list[str]]:
    """What completes one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [each for each in known if each.startswith(incomplete)]

    return complete


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """The cluster's topics; internal ones once somebody has begun to write such a name."""
    return _names(ctx, incomplete, lambda admin: admin.topics.list(internal=incomplete.startswith("_")))


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """The cluster's groups of every type."""
    return _names(ctx, incomplete, _group_ids)


def streams_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """The cluster's streams groups, and so its applications."""
    return _names(ctx, incomplete, lambda admin: _group_ids(admin, "streams"))


def share_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """The cluster's share groups."""
    return _names(ctx, incomplete, lambda admin: _group_ids(admin, "share"))


def transactional_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The transactional ids that brokers know."""
    return _names(ctx, incomplete, _transactional_ids)


def resources(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topics or groups, by the kind of resource that the line names before."""
    kind = str(ctx.params.get("kind") or "").removesuffix("s")
    return topics(ctx, incomplete) if kind == "topic" else groups(ctx, incomplete) if kind == "group" else []


def clusters(incomplete: str) -> list[str]:
    """The names of `kohort clusters`."""
    from kohort.cli.client.profiles import read_profiles
    from kohort.client.errors import ConfigError

    try:
        return [each for each in sorted(read_profiles().clusters) if each.startswith(incomplete)]
    except ConfigError:
        return []


async def _group_ids(admin: Admin, *types: str) -> list[str]:
    return [group.group_id for group in await admin.groups.list(types=types)]


async def _transactional_ids(admin: Admin) -> list[str]:
    return [each.transactional_id for each in await admin.transactions.list()]


def _names(ctx: typer.Context, incomplete: str, read: Callable[[Admin], Awaitable[Iterable[str]]]) -> list[str]:
    """Names that begin so, without those that the line has already."""
    given = {each for value in ctx.params.values() if isinstance(value, (list, tuple)) for each in value}
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # a shell has no place for what is wrong
            found = asyncio.run(_read(ctx, read))
    except Exception:
        return []
    return sorted(name for name in found if name.startswith(incomplete) and name not in given)


async def _read(ctx: typer.Context, read: Callable[[Admin], Awaitable[Iterable[str]]]) -> list[str]:
    from kohort.cli.client.options import client_config
    from kohort.client.admin import Admin
    from kohort.client.time_limit import time_limit

    config = client_config(ctx.params.get("bootstrap_server"), ctx.params.get("config"), _PATIENCE_S)
    async with time_limit(_PATIENCE_S), Admin(replace(config, on_no_broker=None)) as admin:
        return [*await read(admin)]
