"""A generated page, and what Markdown needs of texts that come from the code."""

from __future__ import annotations

import re
from typing import NamedTuple


class Page(NamedTuple):
    """A page of the site.

    Attributes:
        path: below docs/, "reference/messages/heartbeat.md".
        section: the headings above it in the navigation, below "Reference".
        text: Markdown.
    """

    path: str
    section: tuple[str, ...]
    text: str


def cell(text: str) -> str:
    """A text as a cell of a table: on one line, without what Markdown or HTML would take for its own."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;").replace("*", "\\*")
    return " ".join(re.sub(r"(?<!`)_", r"\\_", escaped).split()) if "`" not in text else " ".join(escaped.split())


def code(text: str) -> str:
    """A text as code in a cell of a table."""
    return f"`{' '.join(text.split())}`".replace("|", "\\|") if text.strip() else ""


def slug(name: str) -> str:
    """A name as a file's: "ConsumerGroupHeartbeat" is "consumer-group-heartbeat"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[ _.]", "-", name).lower()
