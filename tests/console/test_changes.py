"""What the console changes, over HTTP beside a broker: shown first, done as shown, and written down."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kohort.client.admin import Admin
from kohort.client.consumer import Consumer
from kohort.client.producer import Producer
from kohort.client.types import TopicPartition
from kohort.console.audit import AuditLog, Who
from kohort.console.server import Policy
from kohort.protocol.errors import ErrorCode, KafkaError
from tests.client.administration.members import join_classic
from tests.console.running import Console, console, hidden
from tests.console.test_server import HTML, page_of

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


async def fill(servers: str) -> None:
    async with Admin(servers) as admin, Producer(servers) as producer:
        await admin.topics.create("orders", partitions=2)
        for number in range(20):
            await producer.send("orders", b"%d" % number, partition=number % 2)
        await producer.flush()


@asynccontextmanager
async def writing(servers: str) -> AsyncIterator[tuple[Console, Admin, list[dict[str, Any]]]]:
    """A console that changes things, a client, and what the audit log has."""
    log = _Lines()
    policy = Policy(write=True, audit=AuditLog(stream=log, clock=lambda: 1_700_000_000.0))
    async with Admin(servers) as admin, console(servers, policy=policy) as at:
        yield at, admin, log.lines


class _Lines(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []

    def write(self, text: str) -> int:
        assert text.endswith("\n")
        assert text.count("\n") == 1
        self.lines.append(json.loads(text))
        return len(text)


async def committed(admin: Admin, group: str) -> dict[TopicPartition, int]:
    return {at: each.offset for at, each in (await admin.group_offsets.committed(group)).items()}


# Groups


def test_offsets_are_reset_as_shown_and_written_down(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            await admin.group_offsets.alter(HTML, {P0: 4, P1: 10})
            planned = await at.plan("group", HTML, "reset-offsets", to="shift", shift="-3")
            page = page_of(planned)
            assert ["orders-0", "4", "1", "reads 3 records again", ""] in page.rows
            assert ["orders-1", "10", "7", "reads 3 records again", ""] in page.rows
            assert "6 records are read again." in planned
            one = await at.plan("group", HTML, "reset-offsets", to="shift", shift="1", topic="orders", partitions="0")
            assert "1 record is skipped: the group won" in one
            assert await committed(admin, HTML) == {P0: 4, P1: 10}
            assert log == []
            page_of(await at.confirm(planned))
            assert await committed(admin, HTML) == {P0: 1, P1: 7}
            begun, done = log
            assert begun == {
                "time": "2023-11-14T22:13:20.000+00:00",
                "user": None,
                "from": "127.0.0.1",
                "action": "reset-offsets",
                "target": HTML,
                "result": "begun",
                "plan": {"offsets": {"orders-0": [4, 1], "orders-1": [10, 7]}},
            }
            assert (done["result"], done["after"]) == ("done", {"offsets": {"orders-0": 1, "orders-1": 7}})

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("fields", "after", "effect"),
    [
        ({"to": "earliest"}, {P0: 0, P1: 0}, "reads 4 records again"),
        ({"to": "latest"}, {P0: 10, P1: 10}, "skips 6 records"),
        ({"to": "offset", "offset": "7"}, {P0: 7, P1: 7}, "skips 3 records"),
        ({"to": "time", "time": "2100-01-01T00:00"}, {P0: 10, P1: 10}, "no record is as late: the end"),
        ({"to": "latest", "topic": "orders", "partitions": "1"}, {P0: 4, P1: 10}, "skips 6 records"),
    ],
)
def test_targets(servers: str, fields: dict[str, str], after: dict[TopicPartition, int], effect: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, _):
            await admin.group_offsets.alter("targets", {P0: 4, P1: 4})
            planned = await at.plan("group", "targets", "reset-offsets", **fields)
            assert effect in planned
            await at.confirm(planned)
            assert await committed(admin, "targets") == after

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"to": "earliest", "offset": "7"},
            "an offset is filled in, but the offsets are to be reset to the first",
        ),
        ({"to": "offset", "offset": "7", "shift": "-1"}, "so many records on is filled in"),
        ({"to": "earliest", "topic": "order"}, "there is no topic &#39;order&#39;; did you mean &#39;orders&#39;?"),
        ({"to": "earliest", "topic": "order", "partitions": "0"}, "did you mean &#39;orders&#39;?"),
        ({"to": "offset"}, "the offset is missing."),
    ],
)
def test_what_does_not_count_is_refused_and_leads_back(servers: str, fields: dict[str, str], said: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, _):
            await admin.group_offsets.alter("typed", {P0: 4})
            token = hidden(await at.page("/change", group="typed"), "form_token")
            form = {"form_token": token, "action": "reset-offsets", "group": "typed", **fields}
            page = await at.post("/change", 400, **form)
            assert said in page
            assert "<h1>That can&#39;t be done</h1>" in page
            assert '<a href="/change?group=typed">Back to the form</a>' in page

    asyncio.run(whole())


def test_a_result_may_be_loaded_again(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            await admin.group_offsets.alter("again", {P0: 4})
            planned = await at.plan("group", "again", "reset-offsets", to="earliest")
            fields = {"form_token": hidden(planned, "form_token"), "plan": hidden(planned, "plan")}
            headers = {"Origin": f"http://127.0.0.1:{at.port}"}
            async with at.http.post("/change/confirm", data=fields, headers=headers, allow_redirects=False) as answer:
                assert answer.status == 303
                where = answer.headers["Location"]
            for _ in range(2):
                assert "The offsets of again in 1 partition are reset." in await at.page(where)
            assert [each["result"] for each in log] == ["begun", "done"]
            await at.page("/change/done", 404, plan="another")
            at.http.cookie_jar.clear()
            await at.page(where, 404)

    asyncio.run(whole())


def test_what_changed_since_it_was_shown_is_not_done(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            await admin.group_offsets.alter("moving", {P0: 4})
            planned = await at.plan("group", "moving", "reset-offsets", to="earliest")
            await admin.group_offsets.alter("moving", {P0: 5})
            again = await at.confirm(planned, 409)
            assert "It has changed since it was shown" in again
            assert ["orders-0", "5", "0", "reads 5 records again", ""] in page_of(again).rows
            assert await committed(admin, "moving") == {P0: 5}
            assert [each["result"] for each in log] == ["refused"]
            await at.confirm(again)
            assert await committed(admin, "moving") == {P0: 0}

    asyncio.run(whole())


def test_to_the_end_is_to_the_end_that_was_shown(servers: str) -> None:
    """Records that come while somebody reads the page are neither skipped, nor do they make it ask for ever."""

    async def whole() -> None:
        async with writing(servers) as (at, admin, _), Producer(servers) as producer:
            await admin.topics.create("growing")
            growing = TopicPartition("growing", 0)
            await admin.group_offsets.alter("ends", {growing: 0})
            await (await producer.send("growing", b"1"))
            planned = await at.plan("group", "ends", "reset-offsets", to="latest")
            await (await producer.send("growing", b"2"))
            await at.confirm(planned)
            assert await committed(admin, "ends") == {growing: 1}

    asyncio.run(whole())


def test_a_group_with_members_is_left_alone_and_loses_those_that_are_chosen(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            member = await join_classic(servers, "busy", P0)
            await admin.groups.describe("busy")
            assert (await at.page("/change", group="busy")).count("The group has 1 member: stop them first.") == 2
            planned = await at.plan("group", "busy", "reset-offsets", to="earliest", topic="orders")
            assert "The group has 1 member: stop them first." in planned
            assert 'name="plan"' not in planned
            planned = await at.plan("group", "busy", "remove-members", member=[member, "gone"])
            assert "1 of those that were chosen" in planned
            assert [member, "–", "kohort", "127.0.0.1", "orders: 0"] in page_of(planned).rows
            await at.confirm(planned)
            assert not (await admin.groups.describe("busy"))["busy"].members
            assert log[-1]["after"] == {"removed": 1}
            planned = await at.plan("group", "busy", "delete-group")
            await at.confirm(planned)
            with pytest.raises(KafkaError) as raised:
                await admin.groups.describe("busy")
            assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND

    asyncio.run(whole())


# Topics


def test_a_topic_from_its_creation_to_its_end(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            planned = await at.plan("", "", "create-topic", name="made", count="2", settings="retention.ms = 1000\r\n")
            assert ["Partitions", "2"] in page_of(planned).rows
            assert "made" not in await admin.topics.list()
            await at.confirm(planned)
            assert len((await admin.topics.list())["made"].partitions) == 2

            planned = await at.plan("topic", "made", "alter-settings", settings="retention.ms=2000", unset="segment.ms")
            assert ["retention.ms", "1000", "2000"] in page_of(planned).rows
            await at.confirm(planned)
            assert log[-2]["plan"]["settings"]["retention.ms"] == ["1000", "2000"]
            assert ["retention.ms", "2000", "this topic"] in page_of(await at.page("/topic", name="made")).rows

            await at.confirm(await at.plan("topic", "made", "add-partitions", count="3"))
            assert len((await admin.topics.list())["made"].partitions) == 3

            planned = await at.plan("topic", "made", "delete-topic")
            assert "with 3 partitions and 0 records" in planned
            await admin.topics.delete("made")
            await admin.topics.create("made")
            await at.confirm(planned, 409)  # it is another topic of that name
            assert "made" in await admin.topics.list()
            await at.confirm(await at.plan("topic", "made", "delete-topic"))
            assert "made" not in await admin.topics.list()

    asyncio.run(whole())


def test_a_record_is_written_once_and_records_are_deleted(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log), Consumer(servers, auto_offset_reset="earliest") as consumer:
            await admin.topics.create("written", partitions=2)
            planned = await at.plan(
                "topic",
                "written",
                "produce",
                partition="1",
                key="00 ff",
                key_form="hex",
                value=f"{HTML}\r\nä",
                headers=f"who={HTML}",
            )
            page_of(planned)
            assert "at offset 0" in await at.confirm(planned)
            await at.confirm(planned, 409)
            consumer.assign([TopicPartition("written", 1)])
            (record,) = await consumer.poll()
            assert (record.key, record.value) == (b"\0\xff", f"{HTML}\nä".encode())
            assert [*record.headers] == [("who", HTML.encode())]
            assert HTML not in json.dumps(log)  # what is in records is nobody's business
            assert log[-2]["after"] == {"partition": 1, "offset": 0}

            planned = await at.plan("topic", "written", "delete-records", before="end", partitions="1")
            assert ["written-1", "0", "1", "1", "1"] in page_of(planned).rows
            await at.confirm(planned)
            assert (await admin.offsets.ends([TopicPartition("written", 1)])).popitem()[1] == (1, 1)
            assert ["Key", "null"] in page_of(await at.plan("topic", "written", "produce", value="v")).rows
            assert ["Key", "empty"] in page_of(await at.plan("topic", "written", "produce", key_form="hex")).rows
            assert "There are no such records." in await at.plan("topic", "written", "delete-records", before="end")

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("action", "fields", "said"),
    [
        ("produce", {"partition": "9"}, "has no partition 9"),
        ("produce", {"key": "xyz", "key_form": "hex"}, "no hex"),
        ("add-partitions", {"count": "1"}, "It has 2 partitions already."),
        ("add-partitions", {"count": "many"}, "a whole number"),
        ("alter-settings", {"settings": HTML}, "key=value"),
        ("alter-settings", {"settings": "no.such.key=1"}, "INVALID_CONFIG"),
        ("delete-records", {"before": "offset", "offset": "99"}, "ends before offset 99"),
        ("delete-records", {"partitions": "0-999999999"}, "partitions are numbers and ranges"),
        ("delete-records", {"before": "end", "offset": "1"}, "choose one."),
        ("explode", {}, "can&#39;t do &#39;explode&#39;"),
    ],
)
def test_what_makes_no_sense_is_said(servers: str, action: str, fields: dict[str, str], said: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, _, log):
            token = hidden(await at.page("/change", topic="orders"), "form_token")
            headers = {"Origin": f"http://127.0.0.1:{at.port}"}
            form = {"form_token": token, "action": action, "topic": "orders", **fields}
            async with at.http.post("/change", data=form, headers=headers) as answer:
                text = await answer.text()
                assert said in text
                assert 'name="plan"' not in text
                page_of(text)
            refused = [(each["result"], each["target"]) for each in log]
            assert refused == ([("refused", "orders")] if said == "INVALID_CONFIG" else [])  # the brokers refuse it

    asyncio.run(whole())


def test_what_the_broker_refuses_is_said_and_written_down(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            await admin.group_offsets.alter("kept", {P0: 1})
            planned = await at.plan("group", "kept", "delete-group")

            async def refuse(*_: object) -> None:
                raise KafkaError(ErrorCode.NON_EMPTY_GROUP, HTML)

            monkeypatch.setattr("kohort.client.administration.groups.Groups.delete", refuse)
            page_of(await at.confirm(planned, 502))
            assert [each["result"] for each in log] == ["begun", "failed"]

    asyncio.run(whole())


def test_nothing_is_done_that_cannot_be_written_down(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, _):
            await admin.group_offsets.alter("unwritten", {P0: 1})
            planned = await at.plan("group", "unwritten", "delete-group")

            def full(*_: object, **__: object) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(AuditLog, "write", full)
            monkeypatch.setattr(AuditLog, "refused", lambda *_, **__: None)
            assert "No space left on device" in await at.confirm(planned, 503)
            assert await committed(admin, "unwritten") == {P0: 1}

    asyncio.run(whole())


def test_what_was_done_is_said_even_if_it_cannot_be_written_down(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            await admin.group_offsets.alter("half-written", {P0: 1})
            planned = await at.plan("group", "half-written", "delete-group")
            write = AuditLog.write

            def soon_full(self: AuditLog, who: Who, result: str, **told: Any) -> None:
                if result != "begun":
                    raise OSError(28, "No space left on device")
                write(self, who, result, **told)

            monkeypatch.setattr(AuditLog, "write", soon_full)
            page = await at.confirm(planned)
            assert "half-written is deleted" in page
            assert "The audit log doesn&#39;t say so: it can&#39;t be written (No space left on device)." in page
            assert "half-written" not in {each.group_id for each in await admin.groups.list()}
            assert [each["result"] for each in log] == ["begun"]

    asyncio.run(whole())


def test_checks_that_are_refused_are_written_down(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, admin, log):
            await admin.group_offsets.alter("checked", {P0: 1})
            planned = await at.plan("group", "checked", "delete-group")

            async def refuse(*_: object, **__: object) -> None:
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

            monkeypatch.setattr("kohort.client.administration.groups.Groups.describe", refuse)
            await at.confirm(planned, 502)
            fields = {"action": "delete-group", "group": "checked", "form_token": hidden(planned, "form_token")}
            await at.post("/change", 502, **fields)
            assert [(each["result"], each["target"]) for each in log] == [("refused", "checked")] * 2
            assert "GROUP_AUTHORIZATION_FAILED" in log[0]["why"]

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"a=\xff"),
        ("application/x-www-form-urlencoded; charset=none-such", b"a=b"),
        ("multipart/form-data", b"a"),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\na\r\n--x--\r\n"),
    ],
)
def test_forms_that_no_browser_sends(servers: str, kind: str, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, _, __):
            headers = {"Origin": f"http://127.0.0.1:{at.port}", "Content-Type": kind}
            for path in ("/change", "/change/confirm"):
                async with at.http.post(path, data=body, headers=headers) as answer:
                    assert answer.status == 400
                    assert "the form can&#39;t be read" in await answer.text()
            assert not caplog.records

    asyncio.run(whole())


# Who may


def test_without_write_there_are_no_forms_and_nothing_is_done(servers: str) -> None:
    async def whole() -> None:
        log = _Lines()
        async with console(servers, policy=Policy(audit=AuditLog(stream=log))) as at:
            assert "started with --write" in await at.page("/change", 403, topic="orders")
            assert "started with --write" in await at.post("/change", 403, action="delete-topic", topic="orders")
            assert "/change" not in await at.page("/topic", name="orders")
            assert "/change" not in await at.page("/topics")
            (line,) = log.lines
            assert (line["result"], line["action"], line["target"]) == ("refused", "post", "/change")

    asyncio.run(whole())


def test_only_forms_of_the_consoles_own_are_taken(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, _, log):
            token = hidden(await at.page("/change", topic="orders"), "form_token")
            form = {"form_token": token, "action": "delete-topic", "topic": "orders"}
            own = f"http://127.0.0.1:{at.port}"
            for headers in (
                {},  # nobody knows from where
                {"Origin": "null"},
                {"Origin": "http://evil.example"},
                {"Origin": f"http://127.0.0.1:{at.port + 1}"},
                {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
                {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"},
                {"Origin": own, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
            ):
                async with at.http.post("/change", data=form, headers=headers) as answer:
                    assert answer.status == 403, headers
            for wrong in ("", "0" * 64, "\udcff"):
                page_of(
                    await at.post("/change", 403, **{**form, "form_token": wrong.encode(errors="replace").decode()})
                )
            assert {each["result"] for each in log} == {"refused"}
            async with at.http.post("/change", data=form, headers={"Origin": own}) as answer:
                assert answer.status == 200
                shown = await answer.text()
            (cookie,) = [each for each in at.http.cookie_jar if each.key.startswith("kohort-console")]
            assert (cookie["samesite"], cookie["httponly"]) == ("Strict", True)
            at.http.cookie_jar.clear()  # somebody else, who has seen the page
            await at.confirm(shown, 403)

    asyncio.run(whole())


def test_a_plan_is_of_who_was_shown_it(servers: str) -> None:
    async def whole() -> None:
        async with writing(servers) as (at, _, _log):
            planned = await at.plan("topic", "orders", "delete-topic")
            at.http.cookie_jar.clear()
            token = hidden(await at.page("/change", topic="orders"), "form_token")
            await at.post("/change/confirm", 409, form_token=token, plan=hidden(planned, "plan"))

    asyncio.run(whole())
