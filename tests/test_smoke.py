"""No target of the Makefile is forgotten, each goes on when a part of it fails, and benchmarks say what they miss."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from benchmarks import wire
from kohort.protocol.message import Message
from tests import smoke
from tests.smoke import ELSEWHERE, SMOKES, Smoke, judge, targets
from tests.tools import KCAT, MAVEN, Tool

ROOT = Path(__file__).parents[1]
NONE = Tool("abacus", "which counts", ("abacus",), lambda: False)


def test_every_target_is_run_somewhere() -> None:
    assert targets() == set(SMOKES) | set(ELSEWHERE)
    assert not set(SMOKES) & set(ELSEWHERE)


def test_what_ci_is_said_to_run_it_runs() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    for target, why in ELSEWHERE.items():
        if why.startswith("CI runs"):
            assert re.search(rf"make [^;\"]*\b{target}\b", script), target
    assert "make smoke" in script
    assert "apt-get" not in script


def test_recipes_go_on_when_a_part_fails() -> None:
    """A recipe of several commands has them run by scripts/each, but for those that can't fail, or prepare."""
    recipes = re.findall(
        r"^([a-z_ -]+|define run_tests)(?::.*)?\n((?:\t.*\n|.*\\\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert len(recipes) > 20
    for name, recipe in recipes:
        commands = [line for line in recipe.replace("\\\n", " ").splitlines() if line]
        prepares = ("\t@$(TOOLS)", "\t@rm -rf", "\t@touch", "\t@scripts/setup", "\t@echo")
        assert len([line for line in commands if not line.startswith(prepares)]) <= 1, name


@pytest.mark.parametrize(
    ("tests", "runs"),
    [
        ("tests", ["tests", "tests/pipeline"]),
        ("tests/", ["tests", "tests/pipeline"]),  # as a shell completes it
        ("tests/pipeline/", ["tests/pipeline"]),
        (
            "tests/client tests/pipeline/test_jobs.py tests/log",
            ["tests/client tests/log", "tests/pipeline/test_jobs.py"],
        ),
    ],
)
def test_those_of_the_pipeline_have_a_run_of_their_own(tests: str, runs: list[str]) -> None:
    command = ["make", "--dry-run", "test", f"TESTS={tests}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert re.findall(r"/pytest .*?\.xml ([^']*)'", done.stdout) == runs


@pytest.mark.parametrize("quote", ["'", '"'])
def test_options_of_pytest_are_passed_through_to_each_run(quote: str) -> None:
    expression = f"--deselect=tests/client/test_a.py -k {quote}a or tests_b{quote}"
    command = ["make", "--dry-run", "test", f"TESTS=tests/client tests/pipeline {expression}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    (line,) = re.findall(r"^scripts/each (?:.*\\\n)*.*", done.stdout, re.MULTILINE)
    _, _, beside, _ = shlex.split(line.replace("\\\n", ""))
    runs = [shlex.split(each)[-4:] for each in shlex.split(beside) if "/pytest " in each]
    options = ["--deselect=tests/client/test_a.py", "-k", "a or tests_b"]
    assert runs == [[*options, "tests/client"], [*options, "tests/pipeline"]]


@pytest.mark.parametrize(
    ("code", "said", "wrong"),
    [
        (0, "a table", ""),
        (0, "nothing", "no 'table' in its output"),
        (2, "a table", "exit code 2"),
        (-1, "a table", "it took longer"),
        (0, "a table\nTraceback (most recent call last):", "a traceback"),
    ],
)
def test_a_target_is_judged(code: int, said: str, wrong: str) -> None:
    assert judge(Smoke("table"), code, said).startswith(wrong)


def test_a_target_that_misses_a_program_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    smoke = Smoke("table", needs=(NONE,))
    assert judge(smoke, 1, NONE.missing) == ""
    assert judge(smoke, 1, "sorry") == "it doesn't say what is missing"
    monkeypatch.setenv("CI", "1")
    assert judge(smoke, 1, NONE.missing) == "exit code 1"


@pytest.mark.timeout(120)
def test_a_target_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it started: its output would never be."""
    (tmp_path / "Makefile").write_text("deaf:\n\t@trap '' TERM; echo here; while :; do sleep 0.1; done\n")
    for name, value in {"ROOT": tmp_path, "LIMIT": 1, "PATIENCE": 1, "SMOKES": {"deaf": Smoke("")}}.items():
        monkeypatch.setattr(smoke, name, value)
    reading, writing = os.pipe()
    with os.fdopen(reading) as said:
        with os.fdopen(writing, "wb") as output:
            assert smoke.run_target("deaf", output) == -1
        assert said.read().startswith("here")


def test_what_a_target_leaves_behind_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its JVMs know that they don't run for long."""
    (tmp_path / "Makefile").write_text('leaves:\n\t@sleep 600 & echo "$$JAVA_TOOL_OPTIONS"\n')
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dmine=1")
    monkeypatch.setattr(smoke, "ROOT", tmp_path)
    monkeypatch.setattr(smoke, "SMOKES", {"leaves": Smoke("")})
    reading, writing = os.pipe()
    with os.fdopen(reading) as said:
        with os.fdopen(writing, "wb") as output:
            assert smoke.run_target("leaves", output) == 0
        assert said.read() == f"-Dmine=1 {smoke.JVM}\n"  # and its end: nobody is left who could write


def test_ctrl_c_leaves_no_traceback() -> None:
    script = """
        import signal, sys
        from tests import smoke
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
        smoke.run_target = lambda *_: signal.raise_signal(signal.SIGINT)
        sys.exit(smoke.main())
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize(
    ("benchmark", "missing"), [("broker", (KCAT, MAVEN)), ("placement", (MAVEN,)), ("groups", (MAVEN,))]
)
def test_benchmarks_end_with_a_sentence(benchmark: str, missing: tuple[Tool, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"benchmarks.{benchmark}", "--quick"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (1, "".join(f"{tool.missing}\n" for tool in missing))


@pytest.mark.long
def test_heartbeats_are_measured_without_apache_kafka(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.heartbeats", "--quick"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Without Apache Kafka: {MAVEN.missing}.")
    assert "consumer, 32 at a time" in done.stdout


@pytest.mark.parametrize(("message", "version"), [(each[1], each[2]) for each in wire.messages()])
def test_messages_of_the_benchmark_are_those_that_come_back(message: Message, version: int) -> None:
    encoded = message.encode(version)
    assert type(message).decode(encoded, version) == message
    wire.kio_functions(message, version, encoded)  # asserts that kio writes the same
