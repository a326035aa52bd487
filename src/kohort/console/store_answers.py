"""What instances answer about their stores: paths that are asked for, and answers taken apart.

Whoever may join a group says where its members answer, so an endpoint may be anything, and so may an answer: only hosts
and ports are taken, and of an answer only what an instance would say.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from kohort.client.administration.group_types import GroupDescription
from kohort.console.record_ranges import ChoiceError
from kohort.console.words import visible

PAGE: Final = 50
"""Rows of a page."""

LONGEST: Final = 16_384
"""Characters of a key or value that are shown."""

_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"(^|\.)([0-9]+|0[xX][0-9a-fA-F]*)$")
"""The end of an IPv4 address in one of the ways that only resolvers read."""

_AFTER: Final = re.compile(r"[A-Za-z0-9%._~+-]{1,20000}")
_MOST: Final = 500


class AnswerError(ValueError):
    """It isn't what an instance answers; says what is wrong."""


class StoreEntry(NamedTuple):
    """A store of an application.

    Attributes:
        name: its name.
        key: the columns of its keys.
        subtopology: where it is; "" for a global one.
        partitions: how many; "" while that isn't known.
        here: partitions that the instance that answers has, with roles.
    """

    name: str
    key: str
    subtopology: str
    partitions: str
    here: str


@dataclass(frozen=True, slots=True)
class StoreRows:
    """Keys and values.

    Attributes:
        rows: of each its key and its value, as text.
        after: where the next page begins, as the instance wrote it; "" if this is the last.
        notes: what is missing, and which copies were read.
    """

    rows: Sequence[tuple[str, str]]
    after: str
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class StoreChoice:
    """What of a store is asked for.

    Attributes:
        name: the store's; "" for none yet.
        key: a key, whose value is wanted; "" for rows in order.
        prefix, first, end: of the keys of rows; "" for any.
        after: where a page begins, as an instance wrote it; "" for the first page.
    """

    name: str
    key: str
    prefix: str
    first: str
    end: str
    after: str

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> StoreChoice:
        """Reads a form's fields; a page's begin that no instance wrote is none.

        Raises:
            ChoiceError: a store or key would lead elsewhere.
        """
        after = fields.get("after", "")
        for what in ("store", "key"):
            if fields.get(what) in (".", ".."):  # parts of a path that aren't names, however they are escaped
                raise ChoiceError(f"a {what} that is called {fields[what]} can't be asked for")
        return cls(
            fields.get("store", ""),
            fields.get("key", ""),
            fields.get("prefix", ""),
            fields.get("from", ""),
            fields.get("to", ""),
            after if _AFTER.fullmatch(after) else "",
        )

    @property
    def path(self) -> str:
        """What is asked for."""
        if not self.name:
            return "/stores"
        store = f"/stores/{quote(self.name, safe='', errors='replace')}"
        if self.key:
            return f"{store}/{quote(self.key, safe='', errors='replace')}?stale=true"
        given = {"prefix": self.prefix, "from": self.first, "to": self.end}
        fields = {"limit": str(PAGE), "stale": "true", "partial": "true"}
        fields |= {name: text for name, text in given.items() if text}
        return f"{store}?{urlencode(fields, errors='replace')}" + (f"&after={self.after}" if self.after else "")

    def next(self, after: str) -> dict[str, str]:
        """The fields of the next page."""
        found = {"store": self.name, "prefix": self.prefix, "from": self.first, "to": self.end, "after": after}
        return {name: text for name, text in found.items() if text}


def endpoints(group: GroupDescription, scheme: str = "http") -> dict[str, str]:
    """Where the group's members say they answer: URLs without a path, by what is shown; others are left out."""
    found = {}
    for member in group.members:
        if member.streams is not None and member.streams.endpoint is not None:
            host, port = member.streams.endpoint
            if 0 < port < 65_536 and (name := _host(host)) is not None:
                found[f"{name}:{port}"] = f"{scheme}://{name}:{port}"
    return found


def _host(host: str) -> str | None:
    """A host as a URL has it; None if it is no name and no address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host if _HOST.fullmatch(host) and not _NUMBER.search(host) else None
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return None
    return f"[{address.compressed}]" if address.version == 6 else str(address)


def stores(answer: bytes) -> list[StoreEntry]:
    """The stores that an instance tells of.

    Raises:
        AnswerError: it isn't such an answer.
    """
    found = _object(answer).get("stores")
    if not isinstance(found, list) or not all(isinstance(each, dict) and "name" in each for each in found):
        raise AnswerError("no list of stores")
    return [
        StoreEntry(
            visible(str(each["name"])),
            _text(", ".join(f"{name} ({kind})" for name, kind in _mapping(each.get("key")).items())),
            _text(each.get("subtopology")),
            _text(each.get("partitions")),
            _text(", ".join(f"{copy.get('partition')} {copy.get('role')}" for copy in _list(each.get("here")))),
        )
        for each in found[:_MOST]
    ]


def rows(answer: bytes) -> StoreRows:
    """Rows of a store, or the row of a key.

    Raises:
        AnswerError: it isn't such an answer.
    """
    found = _object(answer)
    if "store" not in found:
        raise AnswerError("it names no store")
    if "rows" not in found:
        role, lag = found.get("role"), found.get("lag")
        where = f"partition {found.get('partition')} on {found.get('instance')}, {role}, {lag} records behind"
        return StoreRows([(_text(found.get("key")), _text(found.get("value")))], "", [visible(where)[:LONGEST]])
    notes = [
        f"Partition {each.get('partition')} is missing: {each.get('reason')}" for each in _list(found.get("missing"))
    ]
    notes += [
        f"Partition {each.get('partition')} is of a copy ({each.get('role')}), {each.get('lag')} records behind"
        for each in _list(found.get("copies"))
    ]
    listed = [(_text(each.get("key")), _text(each.get("value"))) for each in _list(found["rows"])[:_MOST]]
    return StoreRows(listed, _after(found.get("next")), [visible(each)[:LONGEST] for each in notes[:_MOST]])


def refusal(answer: bytes) -> str:
    """What an instance says that refuses.

    Raises:
        AnswerError: it isn't an instance's refusal.
    """
    found = _object(answer)
    if not isinstance(found.get("error"), str) or not isinstance(found.get("message"), str):
        raise AnswerError("no error and message")
    return visible(found["message"])[:LONGEST]


def _object(answer: bytes) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise AnswerError("no JSON") from None
    if not isinstance(found, dict):
        raise AnswerError("no JSON object")
    return found


def _list(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def _after(path: object) -> str:
    if not isinstance(path, str):
        return ""
    query = urlsplit(path).query.split("&") if path.startswith("/") else []
    after = next((each.removeprefix("after=") for each in query if each.startswith("after=")), "")
    return after if _AFTER.fullmatch(after) else ""
