"""The page of a streams group's stores: keys and values, as its instances tell them over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from aiohttp import web

from kohort.console import store_answers as answers
from kohort.console.store_answers import AnswerError, StoreChoice
from kohort.console.visit import MissingError
from kohort.console.watcher import Watcher
from kohort.http_access import OPEN, HttpAccess
from kohort.http_request import HttpClosedError, HttpRequestError, HttpStatusError, http_request
from kohort.similar_names import did_you_mean

ANSWER_S: Final = 5.0
"""Time for an instance's answer."""

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of an answer."""

MOST_ASKED: Final = 3
"""Instances that are asked one after the other, until one answers."""

MOST_AT_A_TIME: Final = 4
"""Requests to instances, of all pages together."""

_UNAUTHORIZED: Final = 401

Page = Callable[..., web.Response]
Answer = TypeVar("Answer")


class StorePages:
    """Answers for `/group/stores`. It asks those endpoints alone that the group's members tell, and nothing else.

    Args:
        watcher: knows the groups and their members.
        page: renders a template by its name, with values.
        access: with what instances are asked: their token, and TLS.
    """

    def __init__(self, watcher: Watcher, page: Page, access: HttpAccess = OPEN) -> None:
        self._watcher = watcher
        self._page = page
        self._access = access
        # Threads of its own bound requests also when pages are left: those that have begun go on until they end.
        self._threads = ThreadPoolExecutor(MOST_AT_A_TIME, "stores")

    def routes(self) -> Sequence[web.RouteDef]:
        """What is answered."""
        return [web.get("/group/stores", self._stores)]

    def close(self) -> None:
        """Asks nothing any more. May be called twice."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _stores(self, request: web.Request) -> web.Response:
        group_id = request.query.get("id", "")
        await self._watcher.look_at(group_id)
        report = self._watcher.report(group_id)
        if report is None:
            raise MissingError(f"There is no group {group_id!r}, or it can't be read.")
        choice = StoreChoice.of(request.query)
        instances = answers.endpoints(report.group, "http" if self._access.client is None else "https")
        known, problem, answered = await self._ask(instances, "/stores", answers.stores)
        found = None
        if choice.name and not problem:
            found, problem, answered = await self._ask({answered: instances[answered]}, choice.path, answers.rows)
            names = [each.name for each in known or ()]
            if problem and choice.name not in names:
                meant = await asyncio.to_thread(did_you_mean, choice.name, names)
                problem += f"; {meant}" if meant else ""
        next_page = urlencode({"id": group_id, **choice.next(found.after)}) if found is not None and found.after else ""
        return self._page(
            "stores",
            here="groups",
            group_id=group_id,
            choice=choice,
            instances=instances,
            answered=answered,
            known=known or [],
            found=found,
            problem=problem,
            next_page=next_page,
        )

    async def _ask(
        self, instances: Mapping[str, str], path: str, parse: Callable[[bytes], Answer]
    ) -> tuple[Answer | None, str, str]:
        """The answer of the first instance that gives one, or what is wrong; and who answered."""
        problems = []
        loop = asyncio.get_running_loop()
        for name, address in list(instances.items())[:MOST_ASKED]:
            try:
                work = loop.run_in_executor(self._threads, _answer, f"{address}{path}", parse, self._access)
                return await work, "", name
            except HttpStatusError as error:
                if error.status == _UNAUTHORIZED:
                    which = "a token" if self._access.token is None else "another token"
                    problems.append(f"{name} wants {which}: --stores-token-file")
                    continue
                try:
                    return None, f"{name} says: {answers.refusal(error.body)}", name
                except AnswerError:
                    problems.append(f"{name}: {error}")
            except HttpClosedError as error:
                plain = self._access.client is None
                hint = "HTTPS: --stores-cafile" if plain else "a certificate, --stores-certfile, or plain HTTP"
                problems.append(f"{name}: {error}; it may want {hint}")
            except HttpRequestError as error:
                problems.append(f"{name}: {error}")
            except AnswerError as error:
                problems.append(f"{name} doesn't answer as an instance of a pipeline does ({error})")
        none = "No member of the group tells where it answers, such as by application_server."
        return None, "; ".join(problems) or none, ""


def _answer(url: str, parse: Callable[[bytes], Any], access: HttpAccess) -> Any:
    headers = {} if access.authorization is None else {"Authorization": access.authorization}
    return parse(http_request(url, seconds=ANSWER_S, max_bytes=MOST_BYTES, headers=headers, tls=access.client))
