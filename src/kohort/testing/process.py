"""A broker as a child process, which can be killed."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from kohort.testing.running import started, stopped
from kohort.testing.settings import TEST_SETTINGS

if TYPE_CHECKING:
    from kohort.broker.config.listeners import SecurityProtocol
    from kohort.testing.secured import Security

__all__ = ["BrokerProcess"]

_READY: Final = b"kohort ready on "
_TAIL: Final = 4000
"""Characters of the log in error messages."""


class BrokerProcess:
    """`kohort serve` as a child process, on a free port, as a context manager.

    It keeps its port and its data when it is killed or stopped and started again; the data is removed in the end,
    unless `data_dir` is given. It ignores settings in the environment. It stops when this process ends, even if that is
    killed; then the data stays.

    Args:
        settings: by Kafka's keys; they override `kohort.testing.settings.TEST_SETTINGS`.
        data_dir: the data directory; a temporary one by default.
        options: more options of `kohort serve`, such as "--durable".
        secure: as of `Broker`.
        patience: seconds to wait for the broker to be ready, or to end.

    Attributes:
        port: its port, once it has run.
    """

    def __init__(
        self,
        settings: Mapping[str, object] | None = None,
        *,
        data_dir: Path | None = None,
        options: tuple[str, ...] = (),
        patience: float = 30,
        secure: bool | Path = False,
    ) -> None:
        self._settings = {**TEST_SETTINGS, **(settings or {})}
        self._data_dir = data_dir
        self._options = options
        self._patience = patience
        self._secure = secure
        self._directory: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, such as "127.0.0.1:9092"."""
        return f"{self.host}:{self.port}"

    @property
    def secured(self) -> bool:
        """Whether it lets in only who has a password."""
        return bool(self._secure)

    @property
    def first_protocol(self) -> SecurityProtocol:
        """What the listener of `bootstrap_servers` speaks, by its settings."""
        from kohort.broker.config import Settings
        from kohort.broker.config.listeners import configured_listeners

        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", **self._settings}
        return configured_listeners(Settings.of(settings, "the test's settings"))[0].protocol

    @property
    def security(self) -> Security:
        """The users and access rules of a secured broker.

        Raises:
            RuntimeError: it hasn't run, or isn't secured.
        """
        if not self._secure or not self.port:
            raise RuntimeError("there are no users: enter BrokerProcess(secure=True) with `with` first")
        from kohort.broker.secured.client_settings import ClientSettings
        from kohort.broker.secured.first_user import NAME
        from kohort.testing.secured import Security

        directory = self._secure_directory
        password = (directory / "password").read_text().split("\n", 1)[0]
        return Security.of(ClientSettings(self.bootstrap_servers, directory / "ca.pem", NAME, password))

    @property
    def pid(self) -> int:
        """The process id.

        Raises:
            RuntimeError: it isn't running.
        """
        return self._running().pid

    def __enter__(self) -> Self:
        self._directory = Path(tempfile.mkdtemp(prefix="kohort-"))
        try:
            self.start()
        except BaseException:
            self._clean_up()
            raise
        started(self)
        return self

    def __exit__(self, *_: object) -> None:
        stopped(self)
        try:
            if self._process is not None:
                self.stop()
        finally:
            self._clean_up()

    def start(self) -> None:
        """Starts it, and waits until it accepts connections.

        Raises:
            RuntimeError: it is running already, it ended at once, or it isn't ready in time; shows the end of its log.
        """
        if self._process is not None:
            raise RuntimeError("the broker runs already")
        if self._directory is None:
            raise RuntimeError("enter the broker with `with` first")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KOHORT_")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment
            )
        try:
            self.port = self._await_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Kills it, as a crash does: SIGKILL."""
        process = self._running()
        process.kill()
        self._ended(process)

    def stop(self) -> int:
        """Stops it (SIGTERM), and returns its exit code.

        Raises:
            RuntimeError: it isn't running, or doesn't end in time; then it is killed.
        """
        process = self._running()
        process.terminate()
        try:
            process.wait(self._patience)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the broker didn't stop within {self._patience} s{self._tail()}") from None
        return self._ended(process)

    def restart(self) -> None:
        """Stops it, if it is running, and starts it on the same port with the same data."""
        if self._process is not None:
            self.stop()
        self.start()

    def log(self, start: int = 0) -> str:
        """Returns its log since it was entered.

        Args:
            start: bytes at its beginning to leave out, such as an earlier `log_size`.
        """
        return self._log.read_bytes()[start:].decode(errors="replace")

    @property
    def log_size(self) -> int:
        """Bytes of its log."""
        return self._log.stat().st_size

    @property
    def _log(self) -> Path:
        assert self._directory is not None
        return self._directory / "kohort.log"

    @property
    def _secure_directory(self) -> Path:
        assert self._directory is not None
        return self._directory / "secure" if isinstance(self._secure, bool) else self._secure

    def _command(self) -> list[str]:
        assert self._directory is not None
        settings = [f"--set={key}={_text(value)}" for key, value in self._settings.items()]
        data_dir = self._data_dir or self._directory / "data"
        listen = f"{self.host}:{self.port}"
        serve = [sys.executable, "-m", "kohort.cli", "serve", "--listen", listen, "--data-dir", str(data_dir)]
        serve.append("--ends-with-stdin")  # a pipe from this process, which is closed however it ends
        secure = ["--secure", str(self._secure_directory)] if self._secure else []
        return [*serve, *secure, *settings, *self._options]

    def _await_ready(self, process: subprocess.Popen[bytes]) -> int:
        """Waits for the broker's ready line, and returns its port."""
        assert process.stdout is not None
        deadline = time.monotonic() + self._patience
        line = b""
        # Not select.select, which takes no file descriptor over 1023.
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise RuntimeError(f"the broker isn't ready after {self._patience} s{self._tail()}")
                piece = os.read(process.stdout.fileno(), 4096)
                if not piece:
                    code = process.wait()
                    raise RuntimeError(f"the broker ended with exit code {code}{self._tail()}")
                line += piece
        if not line.startswith(_READY):
            raise RuntimeError(f"the broker said {line!r} instead of being ready")
        return int(line.rpartition(b":")[2])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the broker doesn't run")
        return self._process

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        code = process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()
        self._process = None
        return code

    def _tail(self) -> str:
        log = self.log().strip()
        return f"; its log ends with\n{log[-_TAIL:]}" if log else ""

    def _clean_up(self) -> None:
        if self._process is not None:
            self.kill()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
