"""The addresses of the protocol's pages: they ask no broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from kohort.console import wire_page
from kohort.console.record_ranges import ChoiceError
from kohort.console.wire_page import Layout

__all__ = ["wire_routes"]


def wire_routes(page: Callable[..., web.Response], check_form: Callable[[str], None]) -> list[web.RouteDef]:
    """The routes.

    Args:
        page: renders a template with values.
        check_form: refuses a form whose token isn't that of who sends it.
    """

    def start(text: str = "", **more: Any) -> web.Response:
        fields = {"layout": Layout.FRAME.value, "name": "", "version": "", "response": ""}
        values = {"data": False, "found": None, "problem": "", "fields": fields} | more
        return page(
            "wire",
            here="wire",
            text=text,
            layouts=list(Layout),
            list_columns=wire_page.LIST_COLUMNS,
            messages=wire_page.message_rows(data=values["data"]),
            dump_columns=wire_page.DUMP_COLUMNS,
            **values,
        )

    async def messages(request: web.Request) -> web.Response:
        return await asyncio.to_thread(start, data=request.query.get("data") == "yes")

    async def message(request: web.Request) -> web.Response:
        found = await asyncio.to_thread(
            wire_page.message_page, request.query.get("name", ""), request.query.get("version", "")
        )
        return page("wire_message", here="wire", found=found, columns=wire_page.PART_COLUMNS)

    async def annotate(request: web.Request) -> web.Response:
        """Labels bytes, which are posted since an address has no room for them; nothing is kept of them."""
        try:
            given = await request.post()
        except web.HTTPRequestEntityTooLarge:
            raise ChoiceError(f"that is too much; {wire_page.MOST_BYTES:,} bytes are the most") from None
        except (ValueError, LookupError):  # no boundary, a charset that there isn't, and the like
            raise ChoiceError("the form can't be read") from None
        fields = {name: text for name, text in given.items() if isinstance(text, str)}
        check_form(fields.get("form_token", ""))
        return await asyncio.to_thread(labelled, fields)

    def labelled(fields: dict[str, str]) -> web.Response:
        """In a thread: many fields take a while."""
        text, name = fields.get("bytes", ""), fields.get("name", "").strip()
        layout = fields.get("layout", "") or Layout.FRAME
        shown = {"layout": layout, "name": name, "version": fields.get("version", "").strip()}
        shown["response"] = fields.get("response", "")
        found, problem = None, ""
        try:
            if layout not in Layout.__members__.values():
                raise ChoiceError(f"bytes are {', '.join(Layout)}, not {layout!r}")
            data = wire_page.bytes_of(text)
            response = shown["response"] == "yes"
            found = wire_page.annotated(data, Layout(layout), name, shown["version"], response=response)
        except ChoiceError as error:
            problem = f"{str(error)[:1].upper()}{str(error)[1:]}."
        return start(text[: wire_page.MOST_TEXT], found=found, problem=problem, fields=shown)

    return [
        web.get("/wire", messages),
        web.get("/wire/message", message),
        web.post("/wire", annotate),
    ]
