"""A page of a long list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

PAGE_SIZE: Final = 50
"""Rows of a page."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page.

    Attributes:
        items: what is on it.
        number, pages: which page it is, from 1, of how many.
        total: how many items there are on all pages.
    """

    items: Sequence[T]
    number: int
    pages: int
    total: int


def page_of(items: Sequence[T], number: int, size: int = PAGE_SIZE) -> Page[T]:
    """The page of that number, or the nearest that there is."""
    pages = max(1, -(-len(items) // size))
    at = min(max(1, number), pages)
    return Page(items[(at - 1) * size : at * size], at, pages, len(items))
