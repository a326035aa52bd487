"""Prometheus and promtool: those on the path, else those of Debian's package, unpacked in `.cache`.

It isn't installed for the tests, as other programs are: the package would start a server on a developer's machine.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.interop.built_once import built_once
from tests.interop.toolchains import FOLDER
from tests.tools import Tool

PACKAGE: Final = "prometheus"


@functools.cache
def program(name: str) -> Path | None:
    """`promtool` or `prometheus`; None if it can't be had."""
    if found := shutil.which(name):
        return Path(found)
    try:
        return built_once(FOLDER, PACKAGE, [b"of the system's release"], _unpack) / "usr" / "bin" / name
    except (OSError, subprocess.CalledProcessError):
        return None


def _unpack(target: Path) -> None:
    target.mkdir()
    try:
        _run(target, "apt-get", "download", PACKAGE)
    except subprocess.CalledProcessError:
        if os.getuid():
            raise
        _run(target, "apt-get", "update", "-qq")  # a fresh container doesn't know yet what there is
        _run(target, "apt-get", "download", PACKAGE)
    (archive,) = target.glob("*.deb")
    _run(target, "dpkg-deb", "--extract", str(archive), ".")
    archive.unlink()


def _run(directory: Path, *command: str) -> None:
    subprocess.run(command, cwd=directory, check=True, capture_output=True)


PROMETHEUS: Final = Tool(
    "Prometheus with promtool",
    "which judges alerts and dashboards",
    (PACKAGE,),
    lambda: program("promtool") is not None and program("prometheus") is not None,
)
