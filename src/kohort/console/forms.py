"""Reads forms as browsers send them."""

from __future__ import annotations

from aiohttp import web

from kohort.console.changes.fields import Fields
from kohort.console.record_ranges import ChoiceError

__all__ = ["fields_of"]


async def fields_of(request: web.Request) -> Fields:
    """The fields of a form; files are none.

    Raises:
        ChoiceError: it can't be read: it isn't in the characters or parts that it says.
    """
    try:
        form = await request.post()
    except (ValueError, LookupError):  # of its charset, its boundaries, its parts
        raise ChoiceError("the form can't be read: it isn't one that a browser sends") from None
    found: dict[str, list[str]] = {}
    for name, value in form.items():
        if isinstance(value, str):
            found.setdefault(name, []).append(value)
    return Fields(found)
