"""The commands of docs/security.md are run as they are written, in their order."""

from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools import MAVEN

from .apache_kafka import free_ports
from .java.jvm import command

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-delegation-tokens.sh": "org.apache.kafka.tools.DelegationTokenCommand",
}
REFUSED = "# is refused"
PATIENCE = 60


class Terminals:
    """One for the server, which ends when another is started, and one for all else.

    Attributes:
        said: what commands printed, and servers logged.
    """

    def __init__(self, directory: Path, programs: Path) -> None:
        self._directory = directory
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("KOHORT_")}
        self._environment["PATH"] = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._server: subprocess.Popen[str] | None = None
        self.said = ""

    def run(self, line: str) -> None:
        """Run a line, which does what it says."""
        if line.startswith("kohort serve"):
            self._serve(line)
            return
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self._directory, env=self._environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == line.endswith(REFUSED), f"{line}\n{done.stdout}\n{done.stderr}"
        self.said += done.stdout

    def _serve(self, line: str) -> None:
        self.end()
        with (self._directory / "log").open("a") as log:
            self._server = subprocess.Popen(
                shlex.split(line), cwd=self._directory, env=self._environment, stdout=subprocess.PIPE, stderr=log,
                text=True,
            )  # fmt: skip
        assert self._server.stdout is not None
        assert select.select([self._server.stdout], [], [], PATIENCE)[0]
        ready = self._server.stdout.readline()
        assert ready.startswith("kohort ready on "), (self._directory / "log").read_text()

    def end(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=PATIENCE)
            self._server = None


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    """With Kafka's tools."""
    MAVEN.require()
    programs, home = tmp_path / "programs", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    for name, main in TOOLS.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join(command("kafka", main))} "$@"\n')
        program.chmod(0o755)
    opened = Terminals(home, programs)
    yield opened
    opened.end()


@pytest.mark.long
def test_the_page(terminals: Terminals, tmp_path: Path) -> None:
    """With free ports in place of those that it names, and of the default."""
    page = PAGE.read_text()
    ports = dict(zip(("9092", "9093", "9094", "9404"), map(str, free_ports(4)), strict=True))
    shown = re.findall(r"^    logger=(.*)$", page, re.MULTILINE)
    page = page.replace("kohort serve --secure kafka", "kohort serve --secure kafka --listen 127.0.0.1:9092")
    page = re.sub("|".join(ports), lambda found: ports[found[0]], page)
    blocks = re.findall(r"^```(sh|properties)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for kind, block in blocks:
        if kind == "properties":
            name = block.split("\n", 1)[0].removeprefix("# ")
            (tmp_path / "home" / name).write_text(block)
            continue
        for line in block.splitlines():
            terminals.run(line)
    log = (tmp_path / "home" / "log").read_text()
    assert len(shown) == 1
    assert shown[0] in log, [line for line in log.splitlines() if "denied" in line]
    for expected in ("orders\n", "two teapots", "TOKENID", "kohort_connections"):
        assert expected in terminals.said
