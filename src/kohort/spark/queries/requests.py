"""The parameters of queries over HTTP, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlencode

from kohort.spark.queries.peer_messages import MAX_LIMIT
from kohort.spark.queries.queryable import StoreInfo
from kohort.spark.queries.url_keys import (
    Key,
    parse_bound,
    parse_group,
    parse_key,
    parse_key_of_all_windows,
    prefix_range,
)

DEFAULT_LIMIT: Final = 100

_KEY_PARAMETERS: Final = frozenset({"stale", "state"})
_RANGE_PARAMETERS: Final = frozenset(
    {"after", "from", "group", "key", "limit", "partial", "partition", "prefix", "stale", "state", "to"}
)


class BadRequestError(ValueError):
    """A request is invalid, and why."""


@dataclass(frozen=True)
class KeyRequest:
    """A query of one key.

    Attributes:
        stale: whether a copy that lags may be read.
        state: whether the response has the state of aggregates, too.
    """

    key: Key
    stale: bool
    state: bool

    @classmethod
    def of(cls, info: StoreInfo, key: str, fields: Mapping[str, str]) -> Self:
        """Parses a URL's parameters.

        Raises:
            BadRequestError, KeyTextError: they are invalid.
        """
        _check_names(fields, _KEY_PARAMETERS)
        return cls(parse_key(info, key), _flag(fields, "stale"), _flag(fields, "state"))


@dataclass(frozen=True)
class RangeRequest:
    """A query of a range of keys.

    Attributes:
        start, end: from `start` to before `end` (None: to the end).
        suffix: of a query of all windows of a key: how the stored keys end.
        route: of such a query, or one of a group's rows: what their partition follows from.
        partition: the only partition that is wanted; None for all.
        partial: whether a response may lack partitions that can't be read.
        limit: the most rows of a page.
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
        """Parses a URL's parameters.

        Raises:
            BadRequestError, KeyTextError: they are invalid.
        """
        _check_names(fields, _RANGE_PARAMETERS)
        starts, ends = [b""], []
        if "from" in fields:
            starts.append(parse_bound(info, fields["from"]))
        if "to" in fields:
            ends.append(parse_bound(info, fields["to"]))
        if fields.get("prefix"):
            start, end = prefix_range(info, fields["prefix"])
            starts.append(start)
            ends += [] if end is None else [end]
        route = None
        if "group" in fields:
            start, end, route = parse_group(info, fields["group"])
            starts.append(start)
            ends.append(end)
        if "after" in fields:
            starts.append(fields["after"].encode(errors="surrogateescape") + b"\0")
        key = parse_key_of_all_windows(info, fields["key"]) if "key" in fields else None
        partition = _number(fields, "partition", 0, None)
        if partition is not None and partition not in partitions:
            raise BadRequestError(f"{info.name} has no partition {partition}")
        return cls(
            start=max(starts),
            end=min(ends, default=None),
            suffix=None if key is None else key.stored,
            route=route if key is None else key.route,
            partition=partition,
            limit=_number(fields, "limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
            stale=_flag(fields, "stale"),
            state=_flag(fields, "state"),
            partial=_flag(fields, "partial"),
            fields=fields,
        )

    def after(self, key: bytes) -> str:
        """The parameters of the next page, after this key."""
        return urlencode({**self.fields, "after": key})


def _check_names(fields: Mapping[str, str], names: frozenset[str]) -> None:
    unknown = sorted(set(fields) - names)
    if unknown:
        raise BadRequestError(f"unknown parameter {unknown[0]!r}; there are: {', '.join(sorted(names))}")


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
