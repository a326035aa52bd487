"""What a missing program does: to a test, to the table in the end, and to what is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import left_out
from tests.tools import INSTALL, MAVEN, TOOLS, Tool, need

ROOT = Path(__file__).parents[1]
NONE = Tool("abacus", "which counts", ("abacus", "abacus-doc"), lambda: False)
THERE = Tool("sheep", "which are counted", ("sheep",), lambda: True)
SENTENCE = "abacus is missing, which counts: run 'apt-get install abacus abacus-doc' as root"


def test_a_test_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    THERE.require()
    with pytest.raises(pytest.skip.Exception, match=re.escape(SENTENCE)):
        NONE.require()


def test_in_ci_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match=re.escape(SENTENCE)):
        NONE.require()


def test_a_benchmark_ends_with_a_sentence() -> None:
    need(THERE)
    with pytest.raises(SystemExit, match=re.escape(SENTENCE)):
        need(THERE, NONE)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_packages_are_those_of_every_debian(tool: Tool) -> None:
    """A version in a name (openjdk-17-jre-headless) is that of one release."""
    assert not [package for package in tool.packages if re.search(r"\d", package)]


Machine = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Runs a command on a machine that has these programs of its own; what they are told is in `told`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("mktemp", "rm", "tail", "cat", "env", "sh", "true", "dirname"):
        found = next(path for path in (Path("/bin", name), Path("/usr/bin", name)) if path.exists())
        (programs / name).symlink_to(found)

    def run_script(*command: str | Path, user: int, **scripts: str) -> subprocess.CompletedProcess[str]:
        for name, body in ({"id": f"echo {user}"} | scripts).items():
            program = programs / name.replace("_", "-")
            program.write_text(f'#!/bin/sh\necho "{program.name} $*" >> "{tmp_path}/told"\n{body}\n')
            program.chmod(0o755)
        return subprocess.run(
            command, capture_output=True, text=True, env={"PATH": str(programs), "TMPDIR": str(tmp_path)}, check=False
        )

    return run_script


def test_root_installs_and_is_told_why(machine: Machine, tmp_path: Path) -> None:
    done = machine(INSTALL, "kcat, a client", "kcat", user=0, apt_get="exit 0", sudo="exit 1")
    assert done.returncode == 0
    assert done.stdout == "setup: installing kcat (kcat, a client)\n"
    told = (tmp_path / "told").read_text()
    assert re.search(r"apt-get update .*\n(.*\n)*apt-get install .*kcat", told)
    assert "sudo" not in told


def test_a_sudo_that_does_not_ask_is_used(machine: Machine, tmp_path: Path) -> None:
    done = machine(INSTALL, "why", "kcat", user=1000, apt_get="exit 0", sudo='shift; exec "$@"')
    assert done.returncode == 0
    assert "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install" in (tmp_path / "told").read_text()


def test_a_sudo_that_asks_is_not(machine: Machine, tmp_path: Path) -> None:
    done = machine(INSTALL, "kcat, a client", "kcat", user=1000, apt_get="exit 0", sudo="exit 1")
    assert done.returncode == 1
    assert done.stderr == "setup: needed: kcat, a client. Run 'apt-get install kcat' as root.\n"
    assert "apt-get" not in (tmp_path / "told").read_text()


def test_elsewhere_debians_names_are_told(machine: Machine) -> None:
    done = machine(INSTALL, "kcat, a client", "kcat", user=0)
    assert done.returncode == 1
    assert done.stderr == "setup: needed: kcat, a client. Install what Debian calls kcat.\n"


def test_what_apt_complains_of_is_told(machine: Machine) -> None:
    done = machine(INSTALL, "kcat, a client", "kcat", user=0, apt_get="echo E: no such thing >&2; exit 100")
    assert done.returncode == 1
    assert "E: no such thing" in done.stderr
    assert "'apt-get install kcat' failed. Needed: kcat, a client." in done.stderr


WITHOUT_VENV = "case $* in *ensurepip*) exit 1;; esac"


def test_a_python_without_venv_is_told_how_to_get_it(machine: Machine, tmp_path: Path) -> None:
    done = machine(
        ROOT / "scripts" / "setup", tmp_path / "venv", user=1000, python3=WITHOUT_VENV, apt_get="", sudo="exit 1"
    )
    assert done.returncode == 1
    assert done.stderr == "setup: needed: the venv module of python3. Run 'apt-get install python3-venv' as root.\n"


def test_a_python_without_venv_gets_it(machine: Machine, tmp_path: Path) -> None:
    done = machine(ROOT / "scripts" / "setup", tmp_path / "venv", user=0, python3=WITHOUT_VENV, apt_get="")
    assert "installing python3-venv (the venv module of python3)" in done.stdout
    assert re.search("apt-get install .*python3-venv\n(.*\n)*python3 -m venv", (tmp_path / "told").read_text())


def test_a_java_home_without_java_is_told_and_nothing_installed(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tests.tools", "java", "maven"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True)
    assert "has no Java 17 or newer: point it at one, or unset it" in done.stderr
    assert "installing" not in done.stdout


def test_maven_takes_the_jdk_of_java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one in it Maven fails, whatever is on the path."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    for program in (programs / "mvn", programs / "java", programs / "javac", home / "bin" / "javac"):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(0o755)
    monkeypatch.setenv("PATH", str(programs))
    for set_to, there in (("", True), (str(home), True), (str(tmp_path), True), (str(tmp_path / "none"), False)):
        monkeypatch.setenv("JAVA_HOME", set_to)
        assert MAVEN.is_there() == there


def test_who_may_have_to_wait_for_maven_may_take_as_long() -> None:
    """In tests/interop all may."""
    for file in (ROOT / "tests").rglob("test_*.py"):
        if ROOT / "tests" / "interop" not in file.parents and "java.build import" in (text := file.read_text()):
            assert "pytestmark = pytest.mark.timeout(MAVEN_S)" in text, file


def test_each_goes_on_and_fails_in_the_end() -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "each", "echo one", "exit 3", "echo three"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "one\nthree\n", "failed:\n  exit 3 (exit code 3)\n")


def test_each_succeeds_when_all_do() -> None:
    done = subprocess.run([ROOT / "scripts" / "each", "true", "echo two"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "two\n", "")


TESTS = """
import pytest
from tests.tools import KCAT, MAVEN

@pytest.mark.parametrize("n", range(3))
def test_kcat(n): KCAT.require()

@pytest.fixture(scope="module")
def maven(): MAVEN.require()

def test_maven(maven): pass
def test_maven_too(maven): pass
def test_good(): pass
def test_bad(): assert False
@pytest.mark.skip(reason="for another reason")
def test_other(): pass
"""


def test_the_table_counts_over_all_runs_and_workers(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    environment = {key: value for key, value in os.environ.items() if key != "CI"} | {"PATH": str(tmp_path)}
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider"]
    for name, options in (("one", ["-n", "2"]), ("two", [])):
        report = f"--junit-xml={tmp_path / name}.xml"
        command = [*pytest_, *options, report, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
        assert done.returncode == 1, done.stdout + done.stderr
    reports = sorted(tmp_path.glob("*.xml"))
    outcome = left_out.read(reports)
    assert (outcome.passed, outcome.failed) == (2, 2)
    kcat, maven = TOOLS["kcat"], TOOLS["maven"]
    assert outcome.left_out == {kcat.missing: 6, maven.missing: 4, "for another reason": 2}

    command = [sys.executable, "-m", "tests.left_out", *map(str, reports), str(tmp_path / "none.xml")]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    rows = [[cell.strip() for cell in line.split("│")] for line in said.splitlines() if line.startswith("│")]
    assert rows[0][2:4] == ["6", kcat.remedy]
    assert [row[2] for row in rows if row[2]] == ["6", "4", "2"]
    assert said.endswith("2 tests passed, 2 failed, 12 were left out\n")
