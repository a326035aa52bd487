"""A broker in this process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kohort.broker.config import Settings
from kohort.broker.server import Server
from kohort.client.loop_thread import LoopThread
from kohort.testing.settings import TEST_SETTINGS

__all__ = ["Broker"]


class Broker:
    """A broker in this process, on a free port, as a context manager: sync or async.

    With `async with` it runs in the caller's event loop, with `with` in a loop in its own thread. It ignores
    settings in the environment.

    Args:
        settings: by Kafka's keys; they override `kohort.testing.settings.TEST_SETTINGS`.
        data_dir: the data directory; by default a temporary one, which is removed with the broker.
        host, port: where to listen; port 0 takes a free one.
        durable: whether to sync to disk before acknowledging.

    Raises:
        ConfigError: invalid settings.
        OSError: the address or the directory can't be used.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        data_dir: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        durable: bool = False,
    ) -> None:
        self._settings = Settings.of({**TEST_SETTINGS, **(settings or {})}, "the test's settings")
        self._data_dir = data_dir
        self._address = host, port
        self._durable = durable
        self._temporary: Path | None = None
        self._server: Server | None = None
        self._thread: LoopThread | None = None

    @property
    def server(self) -> Server:
        """The running server.

        Raises:
            RuntimeError: it isn't running.
        """
        if self._server is None:
            raise RuntimeError("the broker doesn't run: enter it with `with` or `async with` first")
        return self._server

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, such as "127.0.0.1:9092"."""
        return f"{self.server.host}:{self.server.port}"

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop()

    def __enter__(self) -> Self:
        self._thread = LoopThread("kohort-broker")
        try:
            self._thread.run(self._start())
        except BaseException:
            self._thread.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        try:
            self._thread.run(self._stop())
        finally:
            self._thread.close()

    async def _start(self) -> None:
        if self._server is not None:
            raise RuntimeError("the broker runs already")
        directory = None if self._data_dir is None else Path(self._data_dir)
        if directory is None:
            directory = self._temporary = Path(tempfile.mkdtemp(prefix="kohort-"))
        host, port = self._address
        try:
            server = Server(self._settings, data_dir=directory, host=host, port=port, durable=self._durable)
            await server.start()
        except BaseException:
            self._clean_up()
            raise
        self._server = server

    async def _stop(self) -> None:
        server, self._server = self._server, None
        try:
            if server is not None:
                await server.stop()
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
