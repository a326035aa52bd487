"""The address of the pages of records."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from kohort.client.types import Record
from kohort.console.record_decoding import Decoded
from kohort.console.record_filter import RecordFilter
from kohort.console.record_ranges import RecordChoice, Where, positions_text
from kohort.console.record_reader import WITHIN_S, RecordReader
from kohort.console.record_text import Form, Shown, shown, shown_as

__all__ = ["record_routes"]

_LATE: Final = Decoded(None, "bytes", "not decoded, as the page took too long")


def record_routes(page: Callable[..., web.Response], reader: RecordReader) -> list[web.RouteDef]:
    """The routes.

    Args:
        page: renders a template with values.
        reader: reads records.
    """

    async def records(request: web.Request) -> web.Response:
        topic = request.query.get("topic", "")
        choice = RecordChoice.of(request.query)
        wanted = RecordFilter.of(request.query)
        given = request.query.get("as", "")
        form = Form(given) if given in Form.__members__.values() else Form.AUTO
        found = await reader.read(topic, choice, wanted)
        # The same search, from where this page ends.
        fields = {name: text for name, text in request.query.items() if name != "at"}
        on = None if found.positions is None else urlencode(fields | {"at": positions_text(found.positions)})

        def rows() -> list[tuple[Record, Shown, Shown, list[tuple[str, str]]]]:
            until = time.monotonic() + WITHIN_S
            return [row(record, late=time.monotonic() >= until) for record in found.records]

        def row(record: Record, *, late: bool) -> tuple[Record, Shown, Shown, list[tuple[str, str]]]:
            key = _LATE if late else reader.decoder.key(topic, record.key)
            value = _LATE if late else reader.decoder.value(topic, record.key, record.value)
            return (
                record,
                shown_as(key, record.key, form),
                shown_as(value, record.value, form),
                _headers(record.headers),
            )

        # In a thread: many and large values take a while, in which open pages are told what changes.
        return await reader.in_thread(
            lambda: page(
                "records",
                here="topics",
                topic=topic,
                choice=choice,
                fields=request.query,
                form=form,
                forms=list(Form),
                wheres=list(Where),
                found=found,
                filtered=bool(wanted),
                on=on,
                records=rows(),
            )
        )

    return [web.get("/records", records)]


def _headers(headers: Collection[tuple[str, bytes | None]]) -> list[tuple[str, str]]:
    return [(name, shown(value).text) for name, value in headers]
