"""What the parameters of a query ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlencode

from kohort.spark.queries.peer_messages import MAX_LIMIT
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.url_keys import Key, all_windows, bound, parse_key, prefix_range

__all__ = ["DEFAULT_LIMIT", "BadRequestError", "KeyRequest", "RangeRequest"]

DEFAULT_LIMIT: Final = 100

_OF_KEYS: Final = frozenset({"stale", "state"})
_OF_RANGES: Final = frozenset(
    {"after", "from", "key", "limit", "partial", "partition", "prefix", "stale", "state", "to"}
)


class BadRequestError(ValueError):
    """A request that makes no sense, and why."""


@dataclass(frozen=True)
class KeyRequest:
    """One key.

    Attributes:
        key: which.
        stale: a copy will do.
        state: aggregates' state is wanted, too.
    """

    key: Key
    stale: bool
    state: bool

    @classmethod
    def of(cls, info: StoreInfo, key: str, fields: Mapping[str, str]) -> Self:
        """The request that a URL makes.

        Raises:
            BadRequestError, KeyTextError: it makes none.
        """
        _known(fields, _OF_KEYS)
        return cls(parse_key(info, key), _flag(fields, "stale"), _flag(fields, "state"))


@dataclass(frozen=True)
class RangeRequest:
    """Keys in their order.

    Attributes:
        start, end: from which, and to before which (None: to the end).
        suffix, route: of all windows of one key: how they end, and what their partition follows from.
        partition: the only one that is wanted.
        partial: rather some rows than none, where not all can be had.
        limit: rows on a page.
    """

    start: bytes
    end: bytes | None
    suffix: bytes | None
    route: bytes | None
    partition: int | None
    limit: int
    stale: bool
    state: bool
    partial: bool
    fields: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, info: StoreInfo, fields: Mapping[str, str], partitions: tuple[int, ...]) -> Self:
        """The request that a URL makes.

        Raises:
            BadRequestError, KeyTextError: it makes none.
        """
        _known(fields, _OF_RANGES)
        starts, ends = [b""], []
        if "from" in fields:
            starts.append(bound(info, fields["from"]))
        if "to" in fields:
            ends.append(bound(info, fields["to"]))
        if fields.get("prefix"):
            start, end = prefix_range(info, fields["prefix"])
            starts.append(start)
            ends += [] if end is None else [end]
        if "after" in fields:
            starts.append(fields["after"].encode(errors="surrogateescape") + b"\0")
        key = all_windows(info, fields["key"]) if "key" in fields else None
        partition = _number(fields, "partition", 0, None)
        if partition is not None and partition not in partitions:
            raise BadRequestError(f"{info.name} has no partition {partition}")
        return cls(
            start=max(starts),
            end=min(ends, default=None),
            suffix=None if key is None else key.stored,
            route=None if key is None else key.route,
            partition=partition,
            limit=_number(fields, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
            stale=_flag(fields, "stale"),
            state=_flag(fields, "state"),
            partial=_flag(fields, "partial"),
            fields=fields,
        )

    def after(self, key: bytes) -> str:
        """The query part of the URL of the next page, after this key."""
        return urlencode({**self.fields, "after": key})


def _known(fields: Mapping[str, str], known: frozenset[str]) -> None:
    unknown = sorted(set(fields) - known)
    if unknown:
        raise BadRequestError(f"unknown parameter {unknown[0]!r}; there are: {', '.join(sorted(known))}")


def _flag(fields: Mapping[str, str], name: str) -> bool:
    value = fields.get(name, "false")
    if value not in ("true", "false"):
        raise BadRequestError(f"{name} is true or false")
    return value == "true"


def _number(fields: Mapping[str, str], name: str, least: int, most: int | None) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
    if number < least or (most is not None and number > most):
        raise BadRequestError(f"{name} is a number " + (f"from {least} to {most}" if most else f"of at least {least}"))
    return number
