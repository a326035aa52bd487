"""The page of stores, beside a broker with a member that tells where it answers, and an instance there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from unittest.mock import AsyncMock, MagicMock

import pytest
from aiohttp import web

from kohort.client.admin import Admin
from kohort.client.streams_member import Endpoint, StreamsMember, Subtopology, Topology
from kohort.console import store_pages
from kohort.http_access import OPEN, HttpAccess
from kohort.http_request import HttpRequestError
from kohort.testing import Broker
from tests.certificates import Certificates
from tests.console.running import Console, console
from tests.console.test_server import HTML, page_of
from tests.spark.queries.fakes import DELAYS, Instances

Answers = dict[str, tuple[int, object]]


@asynccontextmanager
async def instance(answers: Answers, asked: list[str]) -> AsyncIterator[Endpoint]:
    """An instance that answers so by path, and where it is."""

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.rel_url.raw_path_qs)
        status, found = answers.get(
            request.rel_url.raw_path, (404, {"error": "no", "message": "there is no such page"})
        )
        headers = {"Location": "/elsewhere"} if status == 302 else {}
        return web.Response(status=status, text=found if isinstance(found, str) else json.dumps(found), headers=headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield Endpoint("127.0.0.1", runner.addresses[0][1])
    finally:
        await runner.cleanup()


@asynccontextmanager
async def group(answers: Answers, asked: list[str], *, stores: HttpAccess | None = OPEN) -> AsyncIterator[Console]:
    """A console of a group whose member answers so."""
    async with (
        instance(answers, asked) as endpoint,
        group_at(endpoint) as servers,
        console(servers, stores=stores) as at,
    ):
        yield at


@asynccontextmanager
async def group_at(endpoint: Endpoint) -> AsyncIterator[str]:
    """A broker with a group whose member tells that it answers there."""
    topology = Topology({"0": Subtopology(source_topics=["orders"])})
    with Broker() as broker:
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.topics.create("orders")
        async with StreamsMember(broker.bootstrap_servers, "app", topology, user_endpoint=endpoint) as member:
            await anext(member)  # it is in the group then
            yield broker.bootstrap_servers


STORES = {"stores": [{"name": HTML, "key": {"k": "string"}, "subtopology": "0", "partitions": 1, "here": []}]}


def test_keys_and_values_as_an_instance_tells_them() -> None:
    asked: list[str] = []
    path = "/stores/%3Cscript%3Ealert%28%271%27%29%3C%2Fscript%3E%22%26%3Cb%3E"
    listed = {"store": HTML, "rows": [{"key": HTML, "value": {"v": HTML}}], "next": "/stores/x?after=%7B%22"}
    one = {"store": HTML, "partition": 0, "instance": "a:1", "role": "active", "lag": 0, "key": "k", "value": 3}
    answers: Answers = {"/stores": (200, STORES), path: (200, listed), f"{path}/k": (200, one)}

    async def whole() -> None:
        async with group(answers, asked) as at:
            assert "/group/stores?id=app" in await at.page("/group", id="app")
            page = page_of(await at.page("/group/stores", id="app"))
            assert [HTML, "k (string)", "0", "1", ""] in page.rows
            html = await at.page("/group/stores", id="app", store=HTML)
            assert [HTML, json.dumps({"v": HTML})] in page_of(html).rows
            assert "after=%257B%2522" in html
            await at.page("/group/stores", id="app", store=HTML, after="%7B%22")
            assert asked[-1] == f"{path}?limit=50&stale=true&partial=true&after=%7B%22"
            page = page_of(await at.page("/group/stores", id="app", store=HTML, key="k"))
            assert ["k", "3"] in page.rows
            assert "There is no group" in await at.page("/group/stores", 404, id=HTML)
            assert "Did you mean 'app'?" in unescape(await at.page("/group/stores", 404, id="apo"))
            misspelt = unescape(await at.page("/group/stores", id="app", store=f"{HTML}x"))
            assert f"there is no such page; did you mean {HTML!r}?" in misspelt

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("status", "found", "said"),
    [
        (302, "", "it answers 302"),
        (200, "<b>secret</b>", "answer as an instance of a pipeline does (no JSON)"),
        (200, {"secret": 1}, "(no list of stores)"),
        (500, {"error": "failed", "message": f"it failed {HTML}"}, "says: it failed"),
        (200, {"stores": ["x" * 2_000]}, "its answer is larger than 1000 bytes"),
    ],
)
def test_what_no_instance_answers_is_not_shown(
    status: int, found: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(store_pages, "MOST_BYTES", 1_000)

    async def whole() -> None:
        async with group({"/stores": (status, found)}, asked) as at:
            html = await at.page("/group/stores", id="app", store="s")
            page_of(html)
            assert said in html
            assert "secret" not in html
            assert asked == ["/stores"]

    asyncio.run(whole())


def test_the_instance_that_answered_is_asked_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(url: str, parse: Callable[[bytes], object], access: HttpAccess) -> object:
        asked.append(url)
        if len(asked) == 1:
            raise HttpRequestError("no answer within 5 s")
        return parse(json.dumps({"stores": [], "store": "s", "rows": []}).encode())

    monkeypatch.setattr(store_pages, "_answer", answer)
    monkeypatch.setattr(
        store_pages.answers, "endpoints", lambda group, scheme: {"a:1": "http://a:1", "b:2": "http://b:2"}
    )
    watcher, page = MagicMock(look_at=AsyncMock()), MagicMock()
    pages = store_pages.StorePages(watcher, page)
    try:
        asyncio.run(pages.routes()[0].handler(MagicMock(query={"id": "app", "store": "s"})))  # type: ignore[attr-defined]
    finally:
        pages.close()
    assert [url.partition("/stores")[0] for url in asked] == ["http://a:1", "http://b:2", "http://b:2"]
    assert page.call_args.kwargs["answered"] == "b:2"


def test_nothing_is_asked_unless_it_was_said_so() -> None:
    asked: list[str] = []

    async def whole() -> None:
        async with group({"/stores": (200, STORES)}, asked, stores=None) as at:
            await at.page("/group/stores", 404, id="app")
            assert "/group/stores" not in await at.page("/group", id="app")
            assert asked == []

    asyncio.run(whole())


def test_an_instance_that_wants_a_token_and_certificates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A pipeline's own server; what fails is said on the page, which never has the token."""
    (tmp_path / "foreign").mkdir()
    files, foreign = Certificates(tmp_path), Certificates(tmp_path / "foreign")
    for name, text in (("token", "secret-0123456789"), ("wrong", "secret-9876543210")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    token, wrong = tmp_path / "token", tmp_path / "wrong"
    server = HttpAccess.load("", token_file=token, certfile=files.cert, keyfile=files.key, cafile=files.ca)
    own = {"cafile": files.ca, "certfile": files.cert, "keyfile": files.key}
    expected = (
        ({**own, "token_file": token}, DELAYS.name),
        ({**own, "token_file": wrong}, "wants another token: --stores-token-file"),
        (own, "wants a token: --stores-token-file"),
        ({**own, "cafile": foreign.ca, "token_file": token}, "its certificate isn't trusted: "),
        ({"cafile": files.ca, "token_file": token}, "it may want a certificate, --stores-certfile"),
        ({"token_file": token}, "it may want HTTPS: --stores-cafile"),
    )

    async def whole() -> None:
        async with Instances(1, access=server) as instances:
            endpoint = instances.fakes[0].own
            assert endpoint is not None
            async with group_at(endpoint) as servers:
                for given, said in expected:
                    async with console(servers, stores=HttpAccess.to_ask("--stores-", **given)) as at:
                        html = unescape(await at.page("/group/stores", id="app"))
                    assert said in html
                    assert (DELAYS.name in html) is (said == DELAYS.name)
                    assert "secret-" not in html

    asyncio.run(whole())
    assert "secret-" not in caplog.text + "".join(capfd.readouterr())
