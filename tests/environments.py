"""Kohort's wheels in empty environments, with the versions of constraints.txt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
EXTRAS: Final = ("", "arrow", "console", "opentelemetry", "placement", "protobuf", "security", "spark", "all")
"""What can be installed; "" is the base."""
FIRST_TEST: Final = """
import asyncio
from kohort.client import Producer

def test_orders(kohort_broker):
    async def send():
        async with Producer(kohort_broker.bootstrap_servers) as producer:
            return await (await producer.send("orders", b"two teapots"))
    assert asyncio.run(send()).offset == 0
"""
"""A first test with the fixture."""


class Wheels:
    """What this clone is packed into: kohort and kohort-spark."""

    def __init__(self, directory: Path) -> None:
        _run(
            [sys.executable, "-m", "pip", "wheel", *_QUIET, "--no-deps", "--wheel-dir", directory, ROOT, ROOT / "spark"]
        )
        (self.kohort,) = directory.glob("kohort-*.whl")
        (self.kohort_spark,) = directory.glob("kohort_spark-*.whl")
        self.constraints = directory / "constraints.txt"  # by which an extra takes this wheel, and none of an index
        self.constraints.write_text(f"kohort-spark @ {self.kohort_spark.as_uri()}\n")


class Environment:
    """A virtual environment without pip, so that all that is in it was asked for."""

    def __init__(self, directory: Path, wheels: Wheels | None = None) -> None:
        self.directory = directory
        self._wheels = wheels
        self.python = directory / "bin" / "python"
        _run([sys.executable, "-m", "venv", "--clear", "--without-pip", directory])

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        (found,) = self.directory.glob("lib/python*/site-packages")
        return found

    def install(self, *what: str) -> None:
        """What pip installs, with its dependencies."""
        files = [ROOT / "constraints.txt", *([self._wheels.constraints] if self._wheels else [])]
        constraints = [f"--constraint={file}" for file in files]
        _run([sys.executable, "-m", "pip", "--python", self.python, "install", *_QUIET, *constraints, *what])

    def install_kohort(self, extra: str = "") -> None:
        """The wheel of kohort, with an extra or alone."""
        assert self._wheels is not None
        self.install(f"kohort{f'[{extra}]' if extra else ''} @ {self._wheels.kohort.as_uri()}")

    def megabytes(self) -> float:
        """What is installed takes so many on disk, compiled modules included."""
        inodes = {(found.st_dev, found.st_ino): found.st_blocks for found in map(os.lstat, self.packages.rglob("*"))}
        return sum(inodes.values()) * 512 / 1e6

    def remove(self) -> None:
        """Frees the disk."""
        shutil.rmtree(self.directory)

    def run(self, *command: str | Path, directory: Path | None = None) -> str:
        """What a command of the environment prints; it knows nothing of this clone.

        Raises:
            AssertionError: it failed.
        """
        return _run([self.directory / "bin" / command[0], *command[1:]], directory or self.directory)

    def failing(self, *command: str) -> str:
        """What a command of the environment prints that ends with 1, its errors included.

        Raises:
            AssertionError: it ended with something else.
        """
        ran = _start([self.directory / "bin" / command[0], *command[1:]], self.directory)
        assert ran.returncode == 1, f"{' '.join(command)}: {ran.stdout}{ran.stderr}"
        return ran.stdout + ran.stderr


_QUIET: Final = ("--quiet", "--disable-pip-version-check", "--no-input")


def _run(command: list[str | Path], directory: Path | None = None) -> str:
    ran = _start(command, directory)
    assert ran.returncode == 0, f"{' '.join(map(str, command))}: {ran.stdout}{ran.stderr}"
    return ran.stdout


def _start(command: list[str | Path], directory: Path | None) -> subprocess.CompletedProcess[str]:
    left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
