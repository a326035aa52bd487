"""What a topic's open page is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from kohort.console.growth import growth_view
from kohort.console.live import View
from kohort.console.topic_watcher import TopicWatcher

__all__ = ["topic_routes", "topic_view"]

Stream = Callable[..., Awaitable[web.StreamResponse]]


def topic_view(watcher: TopicWatcher, topic: str) -> View:
    """What of a topic's page changes."""
    problem = "The topic is gone." if topic in watcher.gone else watcher.problem
    view = growth_view(watcher.book.of(topic))
    return View({**view.texts, "problem": problem}, view.tables)


def topic_routes(watcher: TopicWatcher, stream: Stream) -> list[web.RouteDef]:
    """The routes.

    Args:
        watcher: what is known of topics.
        stream: tells a page what changes in a view.
    """

    async def events(request: web.Request) -> web.StreamResponse:
        topic = request.query.get("name", "")
        return await stream(request, lambda: topic_view(watcher, topic), lambda: [topic], watcher)

    return [web.get("/topic/events", events, allow_head=False)]
