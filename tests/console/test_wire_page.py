"""The protocol's pages: every message in every version, and bytes of any kind."""

from __future__ import annotations

import asyncio
import base64
import io
from unittest.mock import MagicMock

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.record_ranges import ChoiceError
from kohort.console.server import ConsoleServer
from kohort.console.wire_page import (
    MOST_BYTES,
    MOST_LINES,
    MOST_TEXT,
    Annotated,
    Layout,
    annotated,
    bytes_of,
    message_page,
    message_rows,
)
from kohort.protocol.catalogue import all_messages
from kohort.protocol.messages.headers import RequestHeader
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.records.rows import encode_records
from tests.cli.support import invoke
from tests.console.running import hidden
from tests.console.test_server import page_of

HTML = "<script>alert('1')</script>\"&<b>"
MESSAGE = HeartbeatRequest(group_id=HTML, generation_id=7, member_id="m")
HEADER = RequestHeader(request_api_key=12, request_api_version=4, correlation_id=5, client_id=HTML)
BODY = HEADER.encode(2) + MESSAGE.encode(4)
FRAME = len(BODY).to_bytes(4, "big") + BODY


def lines(found: Annotated) -> list[tuple[str, ...]]:
    return [tuple(cell.text for cell in cells) for dump in found.dumps for cells in dump.rows.values()]


def test_every_message_has_a_page_in_every_version() -> None:
    for name, message in all_messages().items():
        for version in message.__message__.versions[:: max(1, len(message.__message__.versions) - 1)]:
            page = message_page(name, str(version))
            assert page.name == name
            assert page.parts or not page.description.parts
            assert len(page.versions) == len(message.__message__.versions)


def test_all_messages_are_listed() -> None:
    apis, data = message_rows(data=False), message_rows(data=True)
    assert [cell.text for cell in apis["Heartbeat"]] == ["12", "Heartbeat", "0 to 4", "4"]
    assert len(data) + 2 * len(apis) == len(all_messages())


def test_a_frame_is_labelled_as_the_command_does() -> None:
    found = annotated(FRAME, Layout.FRAME)
    assert found.problem == ""
    assert [dump.title for dump in found.dumps] == ["Size of the frame", "RequestHeader v2", "HeartbeatRequest v4"]
    result = invoke("wire", "decode", "--frame", "--annotate", FRAME.hex())
    told = [line.split() for line in result.stdout.splitlines() if line[:6].strip() and line[6:8] == "  "]
    ours = [" ".join(line).split() for line in lines(found)[1:] if line[0] != "…"]
    assert ours == told


@pytest.mark.parametrize("layout", [Layout.HEADER, Layout.MESSAGE])
def test_messages_without_a_frame(layout: Layout) -> None:
    data = BODY if layout is Layout.HEADER else MESSAGE.encode(4)
    name = "" if layout is Layout.HEADER else "heartbeat"
    found = annotated(data, layout, name, "4" if name else "")
    assert found.problem == ""
    assert any(line[2] == "GenerationId" and line[4] == "7" for line in lines(found))


def test_a_response_has_to_be_named() -> None:
    data = b"\0\0\0\5\0" + HeartbeatResponse(error_code=27).encode(4)
    found = annotated(data, Layout.HEADER, "12", "4", response=True)
    assert (found.problem, [line[4] for line in lines(found) if line[2] == "ErrorCode"]) == ("", ["27"])
    with pytest.raises(ChoiceError, match="say which message it is"):
        annotated(data, Layout.HEADER, response=True)
    with pytest.raises(ChoiceError, match="say which message it is"):
        annotated(data, Layout.MESSAGE)
    with pytest.raises(ChoiceError, match="did you mean Heartbeat"):
        annotated(data, Layout.MESSAGE, "heartbeet")
    with pytest.raises(ChoiceError, match="it has 0 to 4"):
        annotated(data, Layout.MESSAGE, "heartbeat", "5")
    with pytest.raises(ChoiceError, match="has no header"):
        annotated(data, Layout.FRAME, "GroupMetadataValue")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0", "The size of the frame needs 4 bytes, 1 is there."),
        (b"\0\0\0\1\0", "The header needs 8 bytes, 1 is there."),
        (b"\0\0\0\4\x03\xe7\0\0", "The header names API 999, which is none."),
        (b"\0\0\0\4\0\x0c\0\x63", "The header asks for Heartbeat v99; known are 0 to 4."),
        (FRAME[:-1], "Byte 87: the number of tagged fields needs 1 bytes, 0 left; and the frame says that 84 bytes"),
        (FRAME + b"x", "The frame says that 84 bytes follow, but 85 do: 1 left over."),
        (b"\xff\xff\xff\xff" + BODY, "The frame says that 4294967295 bytes follow, but 84 do: 4294967211 missing."),
    ],
)
def test_what_is_wrong_with_a_frame_is_a_sentence(data: bytes, why: str) -> None:
    found = annotated(data, Layout.FRAME)
    assert found.problem.startswith(why)
    assert found.problem.endswith(". If these bytes have no header, choose “a message” and name it.")


def test_batches_are_labelled() -> None:
    data = bytes(encode_records([(b"k", b"v")], 5))
    found = annotated(data, Layout.BATCHES)
    assert found.dumps[0].title == "Batch at byte 0: 1 record, none"
    assert annotated(data + data[:40], Layout.BATCHES).problem


@given(
    st.binary(max_size=120), st.sampled_from(Layout), st.sampled_from(["", "Metadata", "Fetch", "12"]), st.booleans()
)
def test_any_bytes_are_labelled_or_refused_by_a_sentence(
    data: bytes, layout: Layout, name: str, response: bool
) -> None:
    try:
        found = annotated(data, layout, name, response=response)
    except ChoiceError as error:
        assert str(error)
        return
    for line in lines(found):
        assert all(char.isprintable() or char in "\n\t" for text in line for char in text)
    assert all(char.isprintable() for char in found.problem)


def test_pastes_are_hex_or_base64_and_bounded() -> None:
    for text in ("00 01:0a\nff", "0x00010aFF", base64.b64encode(b"\0\1\x0a\xff").decode() + "\n"):
        assert bytes_of(text) == b"\0\1\x0a\xff"
    for text, why in (
        ("", "no bytes"),
        ("abc", "3 hex digits, an odd number"),
        ("hello!", "neither hex nor base64"),
        ("00" * (MOST_BYTES + 1), "65,536 are the most"),
        ("0" * (MOST_TEXT + 1), "262,144 are the most"),
    ):
        with pytest.raises(ChoiceError, match=why):
            bytes_of(text)


def test_a_dump_has_a_limit() -> None:
    many = HeartbeatRequest(group_id="g", unknown_tags=dict.fromkeys(range(5000), b""))
    found = annotated(many.encode(4), Layout.MESSAGE, "12")
    assert sum(len(dump.rows) for dump in found.dumps) == MOST_LINES
    assert found.problem == f"The first {MOST_LINES:,} lines."
    assert annotated(many.encode(4)[:-1], Layout.MESSAGE, "12").problem.endswith(f". The first {MOST_LINES:,} lines.")


def test_pages_over_http_have_names_as_text() -> None:
    async def whole() -> None:
        server = ConsoleServer(MagicMock(), MagicMock(), MagicMock(), cluster="c")
        await server.start()
        try:
            at = f"http://127.0.0.1:{server.port}"
            async with aiohttp.ClientSession(at, headers={"Origin": at}) as http:
                async with http.get("/wire") as answer:
                    assert ["12", "Heartbeat", "0 to 4", "4"] in page_of(await answer.text()).rows
                async with http.get("/wire/message", params={"name": "Fetch", "version": "4"}) as answer:
                    text = await answer.text()
                    assert "ReplicaId" in text
                names = ("form_token", "bytes", "layout", "name", "version")
                async with http.post("/wire", data={name: hidden(text, name) for name in names}) as answer:
                    assert "ReplicaId" in [row[2] for row in page_of(await answer.text()).rows]
                async with http.get("/wire/message", params={"name": HTML}) as answer:
                    assert answer.status == 400
                    page_of(await answer.text())
                async with http.post("/wire", data={"bytes": FRAME.hex(" "), "layout": "frame"}) as answer:
                    page = page_of(await answer.text())
                    assert any(HTML[:14] in cell for row in page.rows for cell in row)
                for fields, why in (
                    ({"bytes": HTML}, "This is neither hex nor base64."),
                    ({"bytes": "00", "layout": HTML}, "Bytes are frame, header, message, batches, not"),
                ):
                    async with http.post("/wire", data=fields) as answer:
                        text = await answer.text()
                        page_of(text)
                        assert why in text, text
                large = io.BytesIO(b"bytes=" + b"00" * 2**20)
                form = {"Content-Type": "application/x-www-form-urlencoded"}
                async with http.post("/wire", data=large, headers=form) as answer:
                    assert answer.status == 400
                    assert "65,536 bytes are the most" in await answer.text()
                for kind in ("multipart/form-data", "application/x-www-form-urlencoded; charset=none-such"):
                    async with http.post("/wire", data=b"bytes=00", headers={"Content-Type": kind}) as answer:
                        assert answer.status == 400, kind
                        page_of(await answer.text())
        finally:
            await server.close()

    asyncio.run(whole())
