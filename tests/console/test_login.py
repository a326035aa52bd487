"""Who is let in to the console, for how long, and with whose rights."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import pytest

from kohort.client.admin import Acl, AclOperation, AclResource, Admin
from kohort.client.administration.topics import Topics
from kohort.client.streams_member import StreamsMember, Subtopology, Topology
from kohort.client.types import TopicPartition
from kohort.console.audit import AuditLog
from kohort.console.desk import desk_of
from kohort.console.login import Entered, ScramLogin, TokenLogin
from kohort.console.server import ConsoleServer, Policy
from kohort.console.sessions import IDLE_S, LONGEST_S, MOST, Sessions
from kohort.console.throttle import FREE, Throttle
from kohort.console.words import NOTHING
from kohort.http_access import OPEN
from kohort.testing import Broker
from tests.console.running import Console, console, console_at, hidden
from tests.console.test_server import HTML, page_of

TOKEN = b"0123456789abcdef"


@asynccontextmanager
async def locked(write: bool = False, now: float = 0.0) -> AsyncIterator[tuple[Console, io.StringIO]]:
    """A console that asks for a token."""
    log = io.StringIO()
    async with Broker() as broker:
        servers = broker.bootstrap_servers
        async with Admin(servers) as admin:
            await admin.topics.create("orders")
            await admin.group_offsets.alter("billing", {TopicPartition("orders", 0): 0})
            desk = desk_of(admin, admin._cluster.config, 2.0)
            await desk.watcher.look()
            policy = Policy(TokenLogin(TOKEN, desk), write, AuditLog(stream=log), throttle=Throttle(lambda: now))
            async with console(servers, policy=policy) as at:
                yield at, log


async def log_in(at: Console, secret: str, status: int = 303, name: str = "", after: str = "/groups") -> str:
    """The answer to a login."""
    token = hidden(await at.page("/login", next=after), "form_token")
    form = {"form_token": token, "name": name, "secret": secret, "next": after}
    headers = {"Origin": f"http://127.0.0.1:{at.port}"}
    async with at.http.post("/login", data=form, headers=headers, allow_redirects=False) as answer:
        text = await answer.text()
        assert answer.status == status, text
        return answer.headers.get("Location", text)


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_a_token_opens_the_console_and_logging_out_closes_it() -> None:
    async def whole() -> None:
        async with locked() as (at, log):
            for path in (
                "/groups",
                "/group?id=billing",
                "/topics",
                "/topic?name=orders",
                "/records?topic=orders",
                "/none",
            ):
                async with at.http.get(path, allow_redirects=False) as answer:
                    assert answer.status == 303
                    assert answer.headers["Location"].startswith("/login?next=%2F")
            await at.page("/groups/events", 401)
            await at.page("/static/console.css")
            page_of(await at.page("/login"))
            assert "isn&#39;t the token" in await log_in(at, "wrong" + HTML, 401)
            before = {each.value for each in at.http.cookie_jar}
            assert await log_in(at, TOKEN.decode(), after="/group?id=billing") == "/group?id=billing"
            assert before.isdisjoint({each.value for each in at.http.cookie_jar})  # nobody knew it before
            page = await at.page("/group", id="billing")
            page_of(page)
            async with at.stream("/groups/events"):
                pass
            await at.post("/logout", form_token="wrong")
            page_of(await at.page("/topics"))
            await at.post("/logout", form_token=hidden(page, "form_token"))
            await at.page("/groups/events", 401)
            found = [(each["action"], each["result"], each["user"]) for each in lines(log)]
            assert found == [("login", "refused", None), ("login", "done", "token"), ("logout", "done", "token")]

    asyncio.run(whole())


def test_who_has_not_logged_in_changes_nothing() -> None:
    async def whole() -> None:
        async with locked(write=True) as (at, log):
            token = hidden(await at.page("/login"), "form_token")
            assert "Log in first" in await at.post(
                "/change", 401, form_token=token, action="delete-topic", topic="orders"
            )
            assert "Log in first" in await at.post("/change/confirm", 401, form_token=token, plan="x")
            await log_in(at, TOKEN.decode())
            await at.confirm(await at.plan("topic", "orders", "delete-topic"))
            assert [each["user"] for each in lines(log)][-2:] == ["token", "token"]

    asyncio.run(whole())


def test_a_form_of_somebody_else_logs_nobody_in() -> None:
    async def whole() -> None:
        async with locked() as (at, _):
            form = {"form_token": hidden(await at.page("/login"), "form_token"), "secret": TOKEN.decode()}
            async with at.http.post("/login", data=form, headers={"Origin": "http://evil.example"}) as answer:
                assert answer.status == 403
            await at.post("/login", 403, **{**form, "form_token": "0" * 64})
            await at.page("/groups/events", 401)

    asyncio.run(whole())


def test_guessing_has_to_wait() -> None:
    async def whole() -> None:
        async with locked() as (at, log):
            for _ in range(FREE):
                await log_in(at, "wrong", 401)
            assert "Too many attempts: try again in 1 s" in await log_in(at, TOKEN.decode(), 429)
            assert lines(log)[-1]["why"] == "too many attempts"

    asyncio.run(whole())


def test_sessions_end_by_themselves_and_there_are_not_any_number() -> None:
    now, ended = 0.0, []
    sessions = Sessions(lambda: now)
    desk: Any = None

    def begin(name: str) -> Any:
        return sessions.begin(name, desk, lambda: ended.append(name))

    idle = begin("idle")
    now += IDLE_S
    assert sessions.find(idle.visitor) is idle
    now += IDLE_S + 1
    assert sessions.find(idle.visitor) is None
    busy = begin("busy")
    while now < IDLE_S * 2 + LONGEST_S - 1:
        now += IDLE_S
        sessions.use(busy)
    now += IDLE_S
    assert not sessions.use(busy)
    assert ended == ["idle", "busy"]
    some = [begin(str(number)) for number in range(MOST)]
    now += 1
    assert sessions.use(some[0])
    begin("one more")
    assert ended[2:] == ["1"]
    begin("9")
    assert ended[3:] == ["9"]  # their own first
    begin("one more")
    begin("and one")
    assert ended[4:] == ["one more", "2"]
    sessions.end_all()
    sessions.end(busy)
    assert len(ended) == MOST + 6


def test_what_is_being_done_keeps_a_sessions_connections() -> None:
    ended: list[str] = []
    sessions, desk = Sessions(lambda: 0.0), cast(Any, None)
    session = sessions.begin("alice", desk, lambda: ended.append("alice"))
    session.hold()
    sessions.end(session)
    assert sessions.find(session.visitor) is None
    assert not ended
    session.release()
    assert ended == ["alice"]
    sessions.end(session)
    assert ended == ["alice"]


def test_everybody_sees_and_does_what_they_may_by_their_own_name() -> None:
    """The console's user is the first, who may do everything: nothing is done by that name."""

    async def whole(broker: Broker) -> None:
        log = io.StringIO()
        login = ScramLogin(broker.security.admin.config, every=0.2, timeout_ms=15_000)
        policy = Policy(login, True, AuditLog(stream=log))
        async with Admin(broker.security.admin.config) as admin:
            for topic in ("orders", "secret"):
                await admin.topics.create(topic)
                await admin.group_offsets.alter(f"of-{topic}", {TopicPartition(topic, 0): 0})
            desk = desk_of(admin, broker.security.admin.config, 2.0)
            server = ConsoleServer(
                desk.watcher, desk.reader, desk.records, access=desk.access, cluster="c", policy=policy
            )
            async with console_at(server, desk.watcher, desk.growth) as at:
                assert "doesn&#39;t let in" in await log_in(at, "wrong", 401, "alice")
                assert "doesn&#39;t let in" in await log_in(at, "pässword", 401, HTML)
                assert "needed" in await log_in(at, "", 401, "alice")
                await log_in(at, "alice-password", name="alice")
                topics = await at.page("/topics")
                assert ">orders<" in topics
                assert "secret" not in topics
                await at.page("/topic", 502, name="secret")
                await at.page("/records", 502, topic="secret")
                groups = await at.page("/groups")
                assert ">of-orders<" in groups
                assert "of-secret" not in groups
                assert "TOPIC_AUTHORIZATION_FAILED" in await at.confirm(
                    await at.plan("topic", "orders", "delete-topic"), 502
                )
                await at.confirm(await at.plan("topic", "orders", "produce", value="v"))
                whose = {(each["user"], each["action"], each["result"]) for each in lines(log)}
                assert ("alice", "delete-topic", "failed") in whose
                assert ("alice", "produce", "done") in whose
                assert (await admin.topics.list()).keys() == {"orders", "secret"}
            assert not login._running

    with Broker(secure=True) as broker:
        broker.security.add_user("alice", "alice-password")
        rules = [
            (AclResource.TOPIC, "orders", AclOperation.READ),
            (AclResource.TOPIC, "orders", AclOperation.WRITE),
            (AclResource.GROUP, "of-orders", AclOperation.DESCRIBE),
        ]
        broker.security.add_acls(
            *(Acl(resource, name, "User:alice", operation)
              for resource, name, operation in rules)
        )  # fmt: skip
        asyncio.run(whole(broker))


def test_who_logs_out_keeps_the_connections_for_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def whole() -> None:
        ended, begun, goes_on = [], asyncio.Event(), asyncio.Event()
        enter, delete = TokenLogin.enter, Topics.delete

        async def enter_here(self: TokenLogin, name: str, secret: str) -> Entered:
            return (await enter(self, name, secret))._replace(end=lambda: ended.append(name))

        async def delete_slowly(self: Topics, *topics: Any) -> None:
            begun.set()
            await goes_on.wait()
            await delete(self, *topics)

        monkeypatch.setattr(TokenLogin, "enter", enter_here)
        monkeypatch.setattr(Topics, "delete", delete_slowly)
        async with locked(write=True) as (at, log):
            await log_in(at, TOKEN.decode())
            planned = await at.plan("topic", "orders", "delete-topic")
            confirmed = asyncio.create_task(at.confirm(planned))
            await begun.wait()
            await at.post("/logout", form_token=hidden(planned, "form_token"))
            assert not ended
            goes_on.set()
            assert "is deleted" in await confirmed
            assert len(ended) == 1
            assert [each["result"] for each in lines(log)][-3:] == ["begun", "done", "done"]

    asyncio.run(whole())


def test_sessions_of_one_user_have_one_desk() -> None:
    async def whole(broker: Broker) -> None:
        login = ScramLogin(broker.security.admin.config, every=0.2, timeout_ms=15_000)
        first, second = [await login.enter("alice", "alice-password") for _ in range(2)]
        assert first.desk is second.desk
        first.end()
        third = await login.enter("alice", "alice-password")
        assert third.desk is second.desk
        broker.security.add_user("alice", "another-password")
        other = await login.enter("alice", "another-password")
        assert other.desk is not second.desk  # it was entered by another password
        assert len(login._running) == 2
        for each in (second, third, other):
            each.end()
        await asyncio.gather(*login._running, return_exceptions=True)
        assert not login._shared
        fourth = await login.enter("alice", "another-password")
        assert fourth.desk is not other.desk
        await login.close()
        assert not login._running

    with Broker(secure=True) as broker:
        broker.security.add_user("alice", "alice-password")
        asyncio.run(whole(broker))


def test_growth_records_placement_and_stores_are_those_of_who_asks() -> None:
    """One console, two people: the first sees all, before and after the second, who may see half of it."""

    async def whole(broker: Broker) -> None:
        config = broker.security.admin.config
        login = ScramLogin(config, every=0.2, timeout_ms=15_000)
        async with Admin(config) as admin, AsyncExitStack() as stack:
            for topic in ("orders", "secret"):
                await admin.topics.create(topic)
                topology = Topology({"0": Subtopology(source_topics=[topic])})
                member = StreamsMember(config, f"of-{topic}", topology, user_endpoint=("127.0.0.1", 9))
                await anext(await stack.enter_async_context(member))  # it is in the group then
            desk = desk_of(admin, config, 2.0)
            await asyncio.gather(desk.watcher.look(), desk.growth.look())
            server = ConsoleServer(
                desk.watcher,
                desk.reader,
                desk.records,
                growth=desk.growth,
                stores=OPEN,
                access=desk.access,
                cluster="c",
                policy=Policy(login),
            )
            async with console_at(server, desk.watcher, desk.growth) as at:
                await at.page("/topic/events", 401, name="orders")
                for user, sees_all in (("root", True), ("alice", False)):
                    await log_in(at, f"{user}-password", name=user)
                    for name in ("orders", "secret"):
                        sees = sees_all or name == "orders"
                        async with at.stream("/topic/events", name=name) as stream:
                            while stream.view.texts["ends"] == NOTHING and not stream.view.texts["problem"]:
                                await stream.next()
                            gone = "" if sees else "The topic is gone."
                            assert stream.view.texts["problem"] == gone
                            assert (stream.view.texts["ends"] == NOTHING) is not sees
                        await at.page("/records", 200 if sees else 502, topic=name)
                        await at.page("/group/placement", 200 if sees else 404, id=f"of-{name}")
                        await at.page("/group/placement", 200 if sees else 404, id=f"of-{name}", task="0_0")
                        page = await at.page("/group/stores", 200 if sees else 404, id=f"of-{name}")
                        assert ("127.0.0.1:9" in page) is sees
                    async with at.stream("/groups/events") as stream:
                        while "of-orders" not in stream.view.tables["groups"].rows:
                            await stream.next()
                        assert ("of-secret" in stream.view.tables["groups"].rows) is sees_all
                        (session,) = server._sessions._open.values()
                        watcher = session.desk.watcher
                        await watcher.news(watcher.version, 30)  # a whole look while the page is open
                        await watcher.news(watcher.version, 30)
                        assert watcher.problem == ""
                    page = await at.page("/wire")
                    fields = {"bytes": "00", "layout": "frame"}
                    await at.post("/wire", 403, **fields, form_token="0" * 64)
                    await at.post("/wire", form_token=hidden(page, "form_token"), **fields)
                    await at.post("/logout", form_token=hidden(page, "form_token"))
                await at.post("/wire", 401, **fields)

    with Broker(secure=True) as broker:
        for user in ("root", "alice"):
            broker.security.add_user(user, f"{user}-password")
        broker.security.add_acls(
            Acl(AclResource.TOPIC, "*", "User:root", AclOperation.READ),
            Acl(AclResource.GROUP, "*", "User:root", AclOperation.DESCRIBE),
            Acl(AclResource.TOPIC, "orders", "User:alice", AclOperation.READ),
            Acl(AclResource.GROUP, "of-orders", "User:alice", AclOperation.DESCRIBE),
        )
        asyncio.run(whole(broker))


@pytest.mark.parametrize("header", ["x" * 43, "../..", ""])
def test_a_cookie_that_was_made_up_is_nobodys(header: str) -> None:
    async def whole() -> None:
        async with locked() as (at, _):
            cookie = {"Cookie": f"kohort-console-{at.port}={header}"}
            async with at.http.get("/topics", headers=cookie, allow_redirects=False) as answer:
                assert answer.status == 303

    asyncio.run(whole())
