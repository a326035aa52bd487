"""Asks every link that leads out of the documents whether it still leads somewhere: `make links`.

A link is one that somebody can follow: in the text of a document, in what makes the site, or in a docstring; what
stands in code or in backticks is an example. Each is asked once, two at a time of one host: the head first, then the
whole. What a server doesn't let a program see can't be told, and isn't broken.

The exit code is 1 if a link is broken, and 2 if nobody answered at all, as without a way to the Internet.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urldefrag, urlsplit

import aiohttp
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kohort.plurals import several

ROOT: Final = Path(__file__).parents[1]
LIMIT: Final = 20
"""Seconds for an answer."""
REFUSALS: Final = frozenset({401, 403, 405, 406, 418, 429, 451, 503, 999})
"""What servers say to programs where a browser may be let in."""
BROWSER: Final = "Mozilla/5.0 (compatible; kohort-links)"

_CODE: Final = re.compile(r"^(`{3,}).*?^\1|^(?: {4}|\t).*?$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"https?://[^\s<>\"'`\\|]+")
_NOBODY: Final = re.compile(
    r"localhost|127\..*|\[?::1\]?|[^.]*|.*\.(example|test|invalid|localhost)|(.*\.)?example\.(com|net|org)"
)
"""Hosts that examples have."""
_NAMESPACES: Final = ("http://www.w3.org/", "http://json-schema.org/")
"""Names that look like links."""


class Verdict(StrEnum):
    GOOD = "good"
    BROKEN = "broken"
    UNTOLD = "can't be told"
    UNREACHED = "not reached"


class Answer(NamedTuple):
    """What became of a question, and the words for it."""

    verdict: Verdict
    why: str


def links(text: str) -> Iterator[tuple[int, str]]:
    """The links of a text that lead to others, each with its line."""
    blank = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    for found in _LINK.finditer(blank):
        link = found[0]
        while link[-1] in ".,:;!?*_]}" or (link.endswith(")") and link.count("(") < link.count(")")):
            link = link[:-1]
        if not link.startswith(_NAMESPACES) and not _NOBODY.fullmatch(urlsplit(link).hostname or ""):
            yield blank.count("\n", 0, found.start()) + 1, link


def documents(root: Path = ROOT) -> Iterator[tuple[str, int, str]]:
    """Files of the repository that readers see, or that make what they see: name, first line, text."""
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "website").rglob("*.*"), root / "mkdocs.yml"]
    for path in sorted(path for path in pages if path.suffix in {".md", ".py", ".toml", ".yml"} and path.exists()):
        text = path.read_text()
        yield str(path.relative_to(root)), 1, text if path.suffix == ".md" else _flush(text)
    for path in sorted((root / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield str(path.relative_to(root)), node.lineno, _flush(node.value.value)


def _flush(text: str) -> str:
    """Lines without their indentation, which is no code's."""
    return "\n".join(line.strip() for line in text.split("\n"))


def places(texts: Iterable[tuple[str, int, str]]) -> dict[str, list[str]]:
    """Where each link stands, as file:line. What is behind its # is the page's, and isn't asked for."""
    found: dict[str, list[str]] = {}
    for name, first, text in texts:
        for line, link in links(text):
            found.setdefault(urldefrag(link).url, []).append(f"{name}:{first + line - 1}")
    return found


async def ask_all(urls: Iterable[str], limit: float = LIMIT) -> dict[str, Answer]:
    """Asks each once."""
    urls = list(urls)
    connector = aiohttp.TCPConnector(limit=20, limit_per_host=2)
    timeout = aiohttp.ClientTimeout(sock_connect=limit, sock_read=limit)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, trust_env=True, headers={"User-Agent": BROWSER}
    ) as session:
        return dict(zip(urls, await asyncio.gather(*(_ask(session, url) for url in urls)), strict=True))


async def _ask(session: aiohttp.ClientSession, url: str) -> Answer:
    answer = Answer(Verdict.UNREACHED, "")
    for method in ("HEAD", "GET"):
        try:
            async with session.request(method, url, allow_redirects=True) as response:
                status, why = response.status, f"{response.status} {response.reason}"
        except TimeoutError:
            answer = Answer(Verdict.UNREACHED, "no answer in time")
        except aiohttp.ClientConnectionError as error:
            answer = Answer(Verdict.UNREACHED, str(error))
        except (aiohttp.ClientError, ValueError) as error:  # redirects without an end or to nowhere, no HTTP
            answer = Answer(Verdict.BROKEN, f"{type(error).__name__}: {error}"[:120])
        else:
            if status < 400:
                return Answer(Verdict.GOOD, why)
            answer = Answer(Verdict.UNTOLD if status in REFUSALS else Verdict.BROKEN, why)
    return answer


def report(found: dict[str, list[str]], answers: dict[str, Answer]) -> tuple[str, int]:
    """What is said of the answers, and the exit code."""
    if answers and all(each.verdict is Verdict.UNREACHED for each in answers.values()):
        url, first = next(iter(answers.items()))
        none = f"None of {several(len(answers), 'link')} was answered"
        return f"{none}: is there a way to the Internet? {url}: {first.why}", 2
    rows = [
        (verdict, answer.why, where, url)
        for verdict in (Verdict.BROKEN, Verdict.UNREACHED, Verdict.UNTOLD)
        for url, answer in answers.items()
        if answer.verdict is verdict
        for where in found[url]
    ]
    table = Table("", "why", "where", "link", box=None)
    for row in rows:
        table.add_row(*map(escape, row))
    count = Counter(answer.verdict for answer in answers.values())
    bad = count[Verdict.BROKEN] + count[Verdict.UNREACHED]
    said = StringIO()
    console = Console(file=said, width=10_000)
    if rows:
        console.print(table)
    console.print(
        f"{several(len(answers), 'link')}: {count[Verdict.GOOD]} good, {bad} broken, "
        f"{count[Verdict.UNTOLD]} of which a program can't tell"
    )
    return "\n".join(line.rstrip() for line in said.getvalue().splitlines()), 1 if bad else 0


def main() -> int:
    found = places(documents())
    said, code = report(found, asyncio.run(ask_all(found)))
    print(said, file=sys.stderr if code == 2 else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
