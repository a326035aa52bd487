from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kohort.cli.client.java_version import java_version
from kohort.cli.demo.errors import DemoError
from kohort.cli.demo.java import check_java
from kohort.cli.demo.plan import Plan, program
from kohort.cli.demo.processes import Child
from tests.waiting import eventually

ROOT = Path(__file__).parents[3]


def demo(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kohort.cli", "demo", *options], capture_output=True, text=True, timeout=60,
        env={**os.environ, **environment}, check=False,
    )  # fmt: skip


def test_a_port_that_is_taken_is_told_at_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = demo("--port", str(port), "--directory", str(tmp_path))
    assert done.returncode == 1
    assert f"port {port} is taken" in done.stderr


def test_without_java_it_says_how_to_get_it(tmp_path: Path) -> None:
    done = demo("--directory", str(tmp_path / "out"), JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "apt-get install default-jre-headless" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_old_java_is_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DemoError, match="is Java 11; Spark needs 17 or newer"):
        check_java()


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8), ('openjdk version "25" x', 25),
     ("what?", None)],
)  # fmt: skip
def test_versions_of_java(said: str, version: int | None) -> None:
    assert java_version(said) == version


def test_the_program_is_the_one_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    first, *lines, last = re.findall(r"```py\n(app = StreamsApp.*?)```", readme, re.DOTALL)[0].strip().splitlines()
    assert first.startswith('app = StreamsApp("flight-delays"')
    assert last == "app.run(spark)"
    assert "\n".join(lines).strip() in program().read_text().replace("\n    ", "\n")


def test_what_an_earlier_run_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "old").touch()
    (tmp_path / "mine.txt").touch()
    plan = Plan(None, 40, tmp_path, tmp_path, 0, 2, False)
    plan.prepare()
    assert {file.name for file in tmp_path.rglob("*")} == {"mine.txt", "run"}


def test_a_directory_that_cant_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DemoError, match="choose another --directory"):
        Plan(None, 40, tmp_path / "file", tmp_path, 0, 2, False).prepare()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_child_ends_with_all_that_it_started(tmp_path: Path) -> None:
    script = "import os, subprocess, sys, time; p = subprocess.Popen(['sleep', '60'], process_group=0);"
    child = Child("x", [sys.executable, "-c", f"{script} print(p.pid, flush=True); time.sleep(60)"], tmp_path / "log")
    with child:
        while not (said := child.tail()):
            time.sleep(0.01)
    assert child.code is not None and child.code < 0
    eventually(lambda: not lives(said), what="the grandchild has ended")


def lives(pid: str) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:  # nobody is there any more, or not even a trace of it
        return False
