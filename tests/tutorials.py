"""Runs a tutorial as its reader would: files are written, commands run, and what they print is what the page shows.

Of the code blocks, one of Python with a title is a file. Those of `sh` are commands, with & at the end beside the
others; the one that starts a broker is left out, since there is one. A block of `text` is what the last command before
it comes to print: it is asked again until it does. Lines may be missing in it, and … stands for anything.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PATIENCE: Final = 120
"""Seconds that a command may be asked again."""

_BLOCK: Final = re.compile(r'^```(python|sh|text)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Tutorial:
    """A page that is followed, in a directory and beside a broker."""

    def __init__(self, page: Path, directory: Path, servers: str) -> None:
        self._page = page
        self._directory = directory
        self._servers = servers
        self._background: list[subprocess.Popen[bytes]] = []
        self._named: dict[str, subprocess.Popen[bytes]] = {}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        # Members' ids are as wide as they are, and commands of the page find what the tests find.
        self._environment = os.environ | {
            "PATH": path, "KOHORT_BOOTSTRAP_SERVERS": servers, "COLUMNS": "200",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }  # fmt: skip
        self._environment.pop("PYTEST_ADDOPTS", None)

    def follow(self) -> int:
        """Does all that the page says; how many outputs were as it shows them.

        Raises:
            AssertionError: a command failed, or never printed what is shown.
        """
        shown, last = 0, ""
        try:
            for language, title, body in blocks(self._page):
                if language == "python" and title:
                    (self._directory / title).write_text(body.replace("localhost:9092", self._servers))
                elif language == "sh":
                    last = self._commands(body)
                elif language == "text":
                    self._wait_for(last, body)
                    shown += 1
                    last = ""
        finally:
            self._end()
        return shown

    def _commands(self, body: str) -> str:
        """Runs commands; the last one, which is run when it is known what it should print, if it is a question."""
        commands = [line for line in body.splitlines() if line and not line.startswith("kohort serve")]
        for command in commands:
            if command.endswith("&"):
                self._background.append(
                    subprocess.Popen(
                        command.removesuffix("&"), shell=True, cwd=self._directory, env=self._environment,
                        start_new_session=True,
                    )
                )  # fmt: skip
            elif command.endswith("=$!"):
                self._named[command.removesuffix("=$!")] = self._background[-1]
            elif command.startswith("kill -9 $"):
                name = command.removeprefix("kill -9 $")
                process = self._background[-1] if name == "!" else self._named[name]
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            elif command is not commands[-1]:
                done = self._run(command)
                assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        final = commands[-1] if commands else ""
        if not final or final.endswith("&") or final.startswith("kill"):
            return ""
        if re.match(r"kohort (topics create|produce)|echo|sed", final):
            done = self._run(final)
            assert done.returncode == 0, f"{final}: {done.stdout}{done.stderr}"
            return ""
        return final

    def _run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, shell=True, cwd=self._directory, env=self._environment, capture_output=True, text=True, check=False
        )

    def _wait_for(self, command: str, shown: str) -> None:
        assert command, f"no command prints {shown!r}"
        until = time.monotonic() + PATIENCE
        while not matches(shown, (printed := self._run(command)).stdout):
            assert time.monotonic() < until, f"{command} printed\n{printed.stdout}{printed.stderr}\nand not\n{shown}"

    def _end(self) -> None:
        for process in self._background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def blocks(page: Path) -> Iterator[tuple[str, str, str]]:
    """The code blocks of a page that are followed: language, title and content."""
    for block in _BLOCK.finditer(page.read_text()):
        yield block[1], block[2] or "", block[3]


def matches(shown: str, printed: str) -> bool:
    """Whether the lines that are shown were printed, in their order."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    return all(
        any(_like(" ".join(line.split()), each) for each in lines) for line in shown.splitlines() if line.strip()
    )


def _like(shown: str, printed: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), printed) is not None
