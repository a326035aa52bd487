"""`make links`, with a server of our own in place of the Internet."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests import links
from tests.links import Answer, Verdict, ask_all, documents, places, report


def test_links_are_what_somebody_can_follow() -> None:
    text = """[a](https://a.org/x_(y)) and https://b.org/page. <https://c.org>, [d](https://d.org/#part)
`https://code.org` http://localhost:8080 https://registry:8081 https://docs.example/x [x](page.md)

    https://indented.org

```
https://fenced.org
```
| https://e.org | `x` |
"""
    assert list(links.links(text)) == [
        (1, "https://a.org/x_(y)"), (1, "https://b.org/page"), (1, "https://c.org"), (1, "https://d.org/#part"),
        (9, "https://e.org"),
    ]  # fmt: skip


def test_each_link_is_asked_once_for_all_its_places(tmp_path: Path) -> None:
    for name, text in {
        "README.md": "one\n[a](https://a.org#here)\n",
        "docs/deep/page.md": "https://a.org#there\n",
        "website/made.py": 'if True:\n    PAGE = "https://b.org/"\n',
        "src/kohort/x.py": 'URL = "https://no.org"\n\n\ndef f():\n    """Does.\n\n    See https://c.org.\n    """\n',
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert places(documents(tmp_path)) == {
        "https://a.org": ["README.md:2", "docs/deep/page.md:1"],
        "https://b.org/": ["website/made.py:2"],
        "https://c.org": ["src/kohort/x.py:7"],
    }


def test_what_servers_answer() -> None:
    asked: list[tuple[str, str]] = []
    stay = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append((request.method, request.path))
        match request.path:
            case "/good":
                return web.Response()
            case "/moved":
                raise web.HTTPMovedPermanently("/good")
            case "/round":
                raise web.HTTPFound("/round")
            case "/whole" if request.method == "GET":
                return web.Response(text="here")
            case "/closed":
                raise web.HTTPForbidden
            case "/slow":
                await stay.wait()
        raise web.HTTPNotFound

    async def test() -> dict[str, Answer]:
        application = web.Application()
        application.router.add_route("*", "/{path}", answer)
        async with TestServer(application) as server:
            closed = socket.socket()
            closed.bind(("127.0.0.1", 0))  # and nobody listens
            names = ["good", "moved", "round", "whole", "closed", "slow", "gone"]
            urls = {name: str(server.make_url(f"/{name}")) for name in names}
            urls["refused"] = f"http://127.0.0.1:{closed.getsockname()[1]}/"
            found = await ask_all(urls.values(), limit=0.5)
            stay.set()
            closed.close()
            return {name: found[url] for name, url in urls.items()}

    found = asyncio.run(test())
    assert {name: answer.verdict.name for name, answer in found.items()} == {
        "good": "GOOD", "moved": "GOOD", "round": "BROKEN", "whole": "GOOD", "closed": "UNTOLD", "slow": "UNREACHED",
        "gone": "BROKEN", "refused": "UNREACHED",
    }  # fmt: skip
    assert asked.count(("HEAD", "/good")) == 2  # by itself, and where another one leads
    assert ("GET", "/good") not in asked
    assert found["gone"].why == "404 Not Found"


GOOD, GONE = Answer(Verdict.GOOD, "200 OK"), Answer(Verdict.BROKEN, "404 Not Found")
CLOSED, AWAY = Answer(Verdict.UNTOLD, "403 Forbidden"), Answer(Verdict.UNREACHED, "no answer in time")
PLACES = {"https://a.org": ["README.md:2", "docs/x.md:1"], "https://b.org": ["docs/x.md:9"]}


@pytest.mark.parametrize(
    ("answers", "code", "last"),
    [
        ((GOOD, GOOD), 0, "2 links: 2 good, 0 broken, 0 of which a program can't tell"),
        ((GOOD, CLOSED), 0, "2 links: 1 good, 0 broken, 1 of which a program can't tell"),
        ((GONE, GOOD), 1, "2 links: 1 good, 1 broken, 0 of which a program can't tell"),
        ((GOOD, AWAY), 1, "2 links: 1 good, 1 broken, 0 of which a program can't tell"),
        (
            (AWAY, AWAY),
            2,
            "None of 2 links was answered: is there a way to the Internet? https://a.org: no answer in time",
        ),
    ],
)
def test_a_report(answers: tuple[Answer, Answer], code: int, last: str) -> None:
    said, found = report(PLACES, dict(zip(PLACES, answers, strict=True)))
    assert found == code
    assert said.splitlines()[-1] == last


def test_a_report_says_where_a_broken_link_stands() -> None:
    said, _ = report(PLACES, {"https://a.org": GONE, "https://b.org": CLOSED})
    assert [line.split() for line in said.splitlines()[1:-1]] == [
        ["broken", "404", "Not", "Found", "README.md:2", "https://a.org"],
        ["broken", "404", "Not", "Found", "docs/x.md:1", "https://a.org"],
        ["can't", "be", "told", "403", "Forbidden", "docs/x.md:9", "https://b.org"],
    ]


def test_without_a_link_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(links, "documents", lambda: [("README.md", 1, "none")])
    assert links.main() == 0
    assert capsys.readouterr().out == "0 links: 0 good, 0 broken, 0 of which a program can't tell\n"
