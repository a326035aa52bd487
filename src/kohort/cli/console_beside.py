"""The console of `kohort serve --console`: a process of its own beside the broker's.

Large pages take time to make, and read records and groups into memory. In the broker's process that time would be its
clients', whatever thread it is in; a process of its own can neither hold the broker up nor take it down. It ends with
the broker, even if that is killed: its standard input ends then.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kohort.broker.listener import Listener

__all__ = ["ConsoleBeside", "ConsoleFailedError", "console_options"]

_STOP_S: Final = 5.0

log = logging.getLogger("kohort.serve")


class ConsoleFailedError(RuntimeError):
    """The console can't be had: says why."""


def console_options(listeners: Sequence[Listener], settings_file: Path | None) -> list[str]:
    """How the console comes to the broker.

    Args:
        listeners: of the broker, which are open.
        settings_file: settings of a client, of a broker that is secured by a directory.

    Raises:
        ConsoleFailedError: it can't, without settings that nobody has given.
    """
    if settings_file is not None:
        return ["--config", str(settings_file), "--login", "scram"]
    for each in listeners:
        if not each.protocol.sasl and not each.protocol.tls:
            host = "127.0.0.1" if each.endpoint.everywhere else each.endpoint.host
            return ["--bootstrap-server", f"[{host}]:{each.port}" if ":" in host else f"{host}:{each.port}"]
    raise ConsoleFailedError(
        "--console needs a listener PLAINTEXT, or --secure; with others, run 'kohort console --config FILE' by itself"
    )


class ConsoleBeside:
    """The process.

    Args:
        options: of `kohort console`.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._options = options
        self._process: Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Starts it; returns its address once it listens.

        Raises:
            ConsoleFailedError: it ended instead; it has said why on standard error.
        """
        command = [sys.executable, "-m", "kohort.cli", "console", "--ends-with-stdin", *self._options]
        self._process = process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        assert process.stdout is not None
        address = (await process.stdout.readline()).decode().strip()
        if not address:
            raise ConsoleFailedError(f"the console doesn't start, and ended with {await process.wait()}")
        self._watch = asyncio.create_task(self._tell_of_its_end(process))
        return address

    async def _tell_of_its_end(self, process: Process) -> None:
        log.warning("the console has ended code=%d; the broker goes on without", await process.wait())

    async def stop(self) -> None:
        """Stops it. May be called twice."""
        if self._watch is not None:
            self._watch.cancel()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
