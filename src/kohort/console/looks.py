"""Looks at the cluster again and again, whatever comes of it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Final

from kohort.console.cluster_reader import ClusterError, explain
from kohort.console.open_pages import OpenPages

__all__ = ["Looks"]

log = logging.getLogger("kohort.console")


class Looks(OpenPages, ABC):
    """Looks, and tells open pages after each.

    Args:
        what: it looks at, for the log.
        every: seconds from one look to the next.
        share: after a look it rests for so many times as long as that took, so that large clusters aren't kept busy,
        longest_rest_s: but not for longer than this: a look that took so long has waited for a broker.

    Attributes:
        problem: why the last look failed; "" if it didn't.
    """

    def __init__(self, what: str, *, every: float, share: int, longest_rest_s: float) -> None:
        super().__init__()
        self._what: Final = what
        self._every = every
        self._share = share
        self._longest_rest_s = longest_rest_s
        self.problem = ""

    @abstractmethod
    async def _look(self) -> str:
        """Looks once; says what of it may be old, "" for nothing.

        Raises:
            ClientError, KafkaError: the cluster doesn't answer, or refuses.
        """

    async def run(self) -> None:
        """Looks until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self.look()
            took = loop.time() - began
            await asyncio.sleep(max(self._every - took, min(self._share * took, self._longest_rest_s)))

    async def look(self) -> None:
        """Looks once."""
        try:
            self.problem = await self._look()
        except ClusterError as error:
            self.problem = f"The cluster doesn't answer as it should, so this may be old: {explain(error)}"
        except Exception:  # whatever a broker says, the next look may go well
            log.exception("a look at the %s failed", self._what)
            self.problem = "A failure of the console, so this may be old; its log says more."
        await self.tell()
