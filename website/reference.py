"""All generated pages, in the order of the navigation."""

from __future__ import annotations

from website import commands, messages, metrics, python, settings
from website.page import Page

__all__ = ["pages"]


def pages() -> list[Page]:
    """Makes all pages of the reference."""
    return [*settings.pages(), *metrics.pages(), *commands.pages(), *python.pages(), *messages.pages()]
