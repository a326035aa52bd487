"""A broker in this process."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kohort.broker.clock import MovableClock
from kohort.broker.config import Settings
from kohort.broker.config.listeners import Endpoint, SecurityProtocol, configured_listeners
from kohort.broker.server import Server
from kohort.client.loop_thread import LoopThread
from kohort.testing.blocking import refuse_own_loop
from kohort.testing.running import started, starting, stopped
from kohort.testing.settings import TEST_SETTINGS

if TYPE_CHECKING:
    from kohort.testing.secured import Security

__all__ = ["Broker"]


class Broker:
    """A broker in this process, on a free port, as a context manager: sync or async.

    With `async with` it runs in the caller's event loop, with `with` in a loop in its own thread. It ignores
    settings in the environment.

    Args:
        settings: by Kafka's keys; they override `kohort.testing.settings.TEST_SETTINGS`.
        data_dir: the data directory; by default a temporary one, which is removed with the broker.
        host, port: where to listen, unless `settings` have `listeners`; port 0 takes a free one.
        durable: whether to sync to disk before acknowledging.
        secure: whether it lets in only who has a password, over TLS, and holds them to access rules; or the directory
            of `kohort serve --secure` with what that needs. Needs the extra `security`.

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
        secure: bool | Path = False,
    ) -> None:
        listeners = {"listeners": f"{'SASL_SSL' if secure else 'PLAINTEXT'}://{Endpoint(host, port)}"}
        self._settings = Settings.of({**listeners, **TEST_SETTINGS, **(settings or {})}, "the test's settings")
        self._data_dir = data_dir
        self._durable = durable
        self._secure = secure
        self._security: Security | None = None
        self._temporary: list[Path] = []
        self._clock = MovableClock()
        self._server: Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: LoopThread | None = None
        self._lock = threading.Lock()
        """So that nobody begins to wait for a broker that is being left."""
        self._advancing: set[Future[None]] = set()

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

    @property
    def event_loop(self) -> asyncio.AbstractEventLoop | None:
        """Where it runs; None if it doesn't."""
        return self._loop

    @property
    def secured(self) -> bool:
        """Whether it lets in only who has a password."""
        return bool(self._secure)

    @property
    def first_protocol(self) -> SecurityProtocol:
        """What the listener of `bootstrap_servers` speaks."""
        return configured_listeners(self._settings)[0].protocol

    @property
    def security(self) -> Security:
        """The users and access rules of a secured broker.

        Raises:
            RuntimeError: it isn't running, or isn't secured.
        """
        if self._security is None:
            raise RuntimeError(
                "there are no users: enter Broker(secure=True) with `with` or `async with` first; "
                "a test takes kohort_secure_broker"
            )
        return self._security

    @property
    def now(self) -> datetime:
        """The broker's time, in UTC."""
        return datetime.fromtimestamp(self._clock() / 1000, UTC)

    def advance(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Moves the broker's clock ahead, and returns when the broker has done what became due, but for syncs.

        To the broker, all that time has passed in which no client said a word. That ends sessions, rebalances, delayed
        joins, transactions, locks of share groups and waiting fetches; periodic tasks, such as retention, compaction
        and expiry, run once if their interval is over. A transaction, too, is ended by a periodic task, every 10 s
        (`transaction.abort.timed.out.transaction.cleanup.interval.ms`), if its timeout has passed, not just been
        reached. Quotas, idle connections and certificates go by the system's time, and so do clients, who stamp their
        records themselves.

        It doesn't wait for syncs to disk (`durable`, `flush.messages`), after which answers to members and markers of
        transactions come, nor for placements of streams tasks that a thread works out: wait there for what you expect.

        With `async with` call it by `asyncio.to_thread`, as all that blocks.

        Args:
            by: how far.
            units: more of it, as `timedelta` takes it: `advance(days=8)`.

        Raises:
            TypeError: `by` isn't a timedelta, or `units` aren't what one takes.
            RuntimeError: it isn't running, or is left meanwhile; or this is its own event loop.
            ValueError: the clock would go back.
        """
        if not isinstance(by, timedelta):
            raise TypeError(f"advance takes a timedelta, such as timedelta(seconds=46), not {by!r:.80}")
        by += timedelta(**units)
        with self._lock:
            server, loop = self.server, self._loop
            assert loop is not None
            refuse_own_loop("broker.advance", loop)
            future = asyncio.run_coroutine_threadsafe(self._advance(server, by), loop)
            self._advancing.add(future)
        try:
            future.result()
        except CancelledError:
            raise RuntimeError("the broker was left while its clock was moved") from None
        finally:
            self._advancing.discard(future)

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
        starting()
        try:
            directory = self._new_directory() if self._data_dir is None else Path(self._data_dir)
            if self._secure:
                server = await self._start_secured(directory)
            else:
                server = Server(self._settings, data_dir=directory, durable=self._durable, clock=self._clock)
                await server.start()
        except BaseException:
            self._clean_up()
            raise
        self._server, self._loop = server, asyncio.get_running_loop()
        started(self)

    async def _advance(self, server: Server, by: timedelta) -> None:
        self._clock.advance(round(by / timedelta(milliseconds=1)))
        await server.broker.catch_up()

    async def _start_secured(self, directory: Path) -> Server:
        from kohort.broker.secured.secured import Secured
        from kohort.testing.secured import Security

        secured = Secured(self._new_directory() if isinstance(self._secure, bool) else self._secure)
        settings = secured.settings(self._settings)
        secured.make(settings)
        server = Server(
            settings,
            data_dir=directory,
            durable=self._durable,
            prepare=lambda broker: secured.let_in(broker.scram_users),
            clock=self._clock,
        )
        await server.start()
        self._security = Security.of(
            secured.client_settings(str(server.listeners[0].advertised)), asyncio.get_running_loop()
        )
        return server

    def _new_directory(self) -> Path:
        made = Path(tempfile.mkdtemp(prefix="kohort-"))
        self._temporary.append(made)
        return made

    async def _stop(self) -> None:
        stopped(self)
        with self._lock:
            server, self._server, self._security, self._loop = self._server, None, None, None
            for future in [*self._advancing]:
                future.cancel()
        try:
            if server is not None:
                await server.stop()
        finally:
            self._clean_up()

    def _clean_up(self) -> None:
        while self._temporary:
            shutil.rmtree(self._temporary.pop(), ignore_errors=True)
