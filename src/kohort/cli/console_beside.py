"""The console of `kohort serve --console`: a process of its own beside the broker's.

Large pages take time to make, and read records and groups into memory. In the broker's process that time would be its
clients', whatever thread it is in; a process of its own can neither hold the broker up nor take it down. It ends with
the broker, even if that is killed: its standard input ends then. Signals of the terminal are the broker's alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kohort.cli.console_child import PORT_TAKEN, TOKEN_VARIABLE, WRONG_CALL

if TYPE_CHECKING:
    from kohort.broker.listener import Listener

__all__ = ["ConsoleBeside", "ConsoleFailedError", "console_options"]

_STOP_S: Final = 15.0
"""To end, with what is being changed: longer than the console waits for that."""

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
        return ["--bootstrap-server", _here(listeners[0]), "--config", str(settings_file), "--login", "scram"]
    for each in listeners:
        if not each.protocol.sasl and not each.protocol.tls:
            return ["--bootstrap-server", _here(each)]
    raise ConsoleFailedError(
        "--console needs a listener PLAINTEXT, or --secure; with others, run 'kohort console --config FILE' by itself"
    )


def _here(listener: Listener) -> str:
    """A listener's address on this machine; what it is called elsewhere may not lead here."""
    endpoint = listener.endpoint
    if endpoint.everywhere:
        endpoint = endpoint._replace(host="::1" if endpoint.host == "::" else "127.0.0.1")
    return str(endpoint)


class ConsoleBeside:
    """The process.

    Args:
        options: of `kohort console`.
        by_user: whether users log in, whatever token the environment has.
    """

    def __init__(self, options: Sequence[str], *, by_user: bool = False) -> None:
        self._options = options
        self._by_user = by_user
        self._process: Process | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> str | None:
        """Starts it; returns its address once it listens, or None if it ended instead, of which the log tells.

        Raises:
            ConsoleFailedError: it ended since it can't be had as it was asked for; it has said why on standard error.
        """
        command = [sys.executable, "-P", "-m", "kohort.cli", "console", "--ends-with-stdin", *self._options]
        environment = {**os.environ}
        if self._by_user:
            environment.pop(TOKEN_VARIABLE, None)
        self._process = process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=environment, start_new_session=True
        )
        assert process.stdout is not None
        async for line in process.stdout:  # others may print, too, which Python loads before
            address = line.decode(errors="replace").strip()
            if address.startswith("http"):
                self._watch = asyncio.create_task(self._tell_of_its_end(process))
                return address
        code = await process.wait()
        if code in (WRONG_CALL, PORT_TAKEN):
            raise ConsoleFailedError(f"the console doesn't start, and ended with {code}")
        log.warning("the console doesn't start code=%d; the broker goes on without", code)
        return None

    async def _tell_of_its_end(self, process: Process) -> None:
        log.warning("the console has ended code=%d; the broker goes on without", await process.wait())

    async def stop(self) -> None:
        """Stops it. May be called twice."""
        if self._watch is not None:
            self._watch.cancel()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
