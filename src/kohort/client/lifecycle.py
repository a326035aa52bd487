"""Clients that are started, used and closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

__all__ = ["Lifecycle"]


class Lifecycle(ABC):
    """A client: `async with` starts it, and closes it in the end."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        await self.close()

    @abstractmethod
    async def start(self) -> Any:
        """Starts it."""

    @abstractmethod
    async def close(self) -> Any:
        """Closes it."""
