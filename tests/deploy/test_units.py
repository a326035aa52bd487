"""systemd's units: what they run is there, and they let a service do no more than it needs."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from kohort.cli.run_server import read_plain
from tests.deploy.promql import DEPLOY
from tests.tools import SYSTEMD

BROKER: Final = DEPLOY / "systemd" / "kohort.service"
APPLICATION: Final = DEPLOY / "systemd" / "kohort-application@.service"
EXPOSURE: Final = 25
"""Of 100, by systemd-analyze security: the most that is let pass."""

of_each_unit = pytest.mark.parametrize("unit", [BROKER, APPLICATION], ids=lambda path: path.stem)


def service(unit: Path) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[method-assign, assignment]
    parser.read_string(unit.read_text())
    return parser["Service"]


def test_the_broker_takes_its_options() -> None:
    program, *arguments = shlex.split(service(BROKER)["ExecStart"])
    assert program == "/opt/kohort/bin/kohort"
    assert arguments[0] == "serve"
    options = read_plain(arguments[1:])
    assert options is not None
    assert (options.data_dir, options.metrics) == ("${STATE_DIRECTORY}", "9090")


@of_each_unit
def test_only_the_main_process_is_told_to_stop(unit: Path) -> None:
    """An epoch that runs still needs the JVM; and the rest has time."""
    assert service(unit)["KillMode"] == "mixed"
    assert int(service(unit)["TimeoutStopSec"]) >= 120


@of_each_unit
def test_what_is_written_has_a_directory(unit: Path) -> None:
    for key in ("StateDirectory", "CacheDirectory", "ConfigurationDirectory"):
        assert service(unit)[key].startswith("kohort"), key
    assert service(unit)["ProtectSystem"] == "strict"


def run_as_a_service(directory: Path, *, metrics: str) -> subprocess.Popen[str]:
    """The broker by its unit's command, with what systemd gives a dynamic user, and no other variables."""
    section = service(BROKER)
    environment = {
        "HOME": "/",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin",
        "STATE_DIRECTORY": str(directory / "state"),
        "CONFIGURATION_DIRECTORY": str(directory / "configuration"),
        **dict([section["Environment"].replace("%C", str(directory / "cache")).split("=", 1)]),
        **{name: value for name, value in os.environ.items() if name == "PYTHONPATH"},
    }
    program, *arguments = (
        re.sub(r"\$\{(\w+)\}", lambda found: environment[found[1]], word) for word in shlex.split(section["ExecStart"])
    )
    assert arguments[-2:] == ["--metrics", "9090"]
    return subprocess.Popen(
        [Path(sys.executable).with_name(Path(program).name), *arguments[:-1], metrics],
        cwd="/", env=environment, umask=int(section["UMask"], 8), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What systemd makes before it starts the broker, with settings."""
    for name in ("state", "configuration", "cache"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "configuration" / "server.properties").write_text("listeners=PLAINTEXT://127.0.0.1:0\n")
    return tmp_path


def test_it_serves_as_a_service_and_ends_by_sigterm(directory: Path) -> None:
    with run_as_a_service(directory, metrics="0") as process:
        try:
            assert process.stdout is not None
            assert re.fullmatch(r"kohort ready on 127.0.0.1:\d+\n", process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            assert process.wait(int(service(BROKER)["TimeoutStopSec"])) == 0
        finally:
            process.kill()
    assert (directory / "state" / ".kafka_cleanshutdown").exists()
    assert (directory / "state" / "meta.properties").stat().st_mode & 0o077 == 0


def test_wrong_settings_are_not_tried_again(directory: Path) -> None:
    (directory / "configuration" / "server.properties").write_text("log.retention.ms=tomorrow\n")
    with run_as_a_service(directory, metrics="0") as process:
        said = process.communicate(timeout=60)[1]
    assert str(process.returncode) == service(BROKER)["RestartPreventExitStatus"]
    assert "log.retention.ms" in said


def installed(unit: Path, directory: Path) -> Path:
    """The unit, where what it runs is installed."""
    copy = directory / unit.name
    copy.write_text(re.sub(r"/opt/kohort/bin/\w+", "/bin/true", unit.read_text()))
    return copy


def analyze(*arguments: str | Path) -> None:
    SYSTEMD.require()
    ran = subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr


@pytest.mark.long
@of_each_unit
def test_systemd_understands_it(unit: Path, tmp_path: Path) -> None:
    analyze("verify", installed(unit, tmp_path).with_name(unit.name.replace("@.", "@flights.")))


@pytest.mark.long
@of_each_unit
def test_it_is_exposed_to_little(unit: Path, tmp_path: Path) -> None:
    analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", installed(unit, tmp_path))
