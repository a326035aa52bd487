"""Commands run beside each other: none is forgotten, none mixes with another, and none outlives who ran it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BESIDE = [sys.executable, "-m", "tests.beside"]


def run(*arguments: str) -> tuple[int, str, str]:
    """The exit code, and what was said once it ended, without times."""
    done = subprocess.run([*BESIDE, *arguments], capture_output=True, text=True, cwd=ROOT, check=False)
    said = re.sub(r"^began: .*\n", "", done.stdout, flags=re.MULTILINE)
    return done.returncode, re.sub(r"^\d+ s", "? s", said, flags=re.MULTILINE), done.stderr


def test_they_run_at_the_same_time(tmp_path: Path) -> None:
    """Each waits for the other."""
    one, two = tmp_path / "one", tmp_path / "two"
    os.mkfifo(one)
    os.mkfifo(two)
    code, said, _ = run(f"echo >{one}; cat {two}; echo first", f"cat {one}; echo >{two}; echo second")
    assert code == 0
    assert {"first", "second"} <= set(said.splitlines())


def test_what_begins_is_told_at_once(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with subprocess.Popen([*BESIDE, f"cat {gate}"], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"began: cat {gate}\n"
        gate.write_text("through")


def test_not_more_than_asked_for_run_at_once() -> None:
    code, said, _ = run("--at-once", "1", "echo one", "echo two", "echo three")
    assert (code, said) == (0, "? s: echo one\none\n? s: echo two\ntwo\n? s: echo three\nthree\n")


def test_what_each_says_is_shown_whole(tmp_path: Path) -> None:
    """Even where another one says something in between."""
    for name in ("began", "said"):
        os.mkfifo(tmp_path / name)
    first = f"echo one; echo >{tmp_path}/began; cat {tmp_path}/said; echo two >&2"
    second = f"cat {tmp_path}/began; echo three; echo >{tmp_path}/said"
    _, said, _ = run(first, second)
    assert f"? s: {first}\none\n\ntwo\n" in said
    assert f"? s: {second}\n\nthree\n" in said


def test_what_the_first_says_comes_at_once_and_the_others_wait_for_its_end(tmp_path: Path) -> None:
    """The second ends first; what it said isn't amid what the first says."""
    gate, done = tmp_path / "gate", tmp_path / "done"
    os.mkfifo(gate)
    os.mkfifo(done)
    first, second = f"cat {done}; echo one; cat {gate}; echo three", f"echo two; echo >{done}"
    with subprocess.Popen([*BESIDE, "--live", first, second], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(3)] == [f"began: {second}\n", "\n", "one\n"]
        gate.write_text("gone on\n")
        said = re.sub(r"^\d+ s", "? s", process.stdout.read(), flags=re.MULTILINE)
    assert said == f"gone on\nthree\n? s: {first}\n? s: {second}\ntwo\n"
    assert process.returncode == 0


def test_one_that_has_ended_gives_its_place_away_while_the_first_goes_on(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code, said, _ = run("--live", f"cat {gate}", "echo two", f"echo from the third >{gate}; echo three")
    assert code == 0
    assert said.startswith("from the third\n")
    assert {"two", "three"} <= set(said.splitlines())


def test_one_that_is_shown_may_fail_too() -> None:
    code, said, failed = run("--live", "exit 3", "echo two")
    assert (code, said, failed) == (1, "? s: exit 3\n? s: echo two\ntwo\n", "failed:\n  exit 3 (exit code 3)\n")


def test_the_others_run_when_one_fails() -> None:
    code, said, failed = run("--at-once", "1", "exit 3", "echo two")
    assert (code, said, failed) == (1, "? s: exit 3\n? s: echo two\ntwo\n", "failed:\n  exit 3 (exit code 3)\n")


def test_what_is_interrupted_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """It may clean up, and what it says then is shown; what doesn't listen is killed."""
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    command = f"trap 'echo cleaned; exit 1' TERM; sh -c 'trap \"\" TERM; exec sleep 600' >{alive} & wait"
    with subprocess.Popen([*BESIDE, command], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        with alive.open() as reading:
            process.send_signal(signal.SIGTERM)
            assert reading.read() == ""  # once nobody is left who could write
        said, _ = process.communicate()
    assert process.returncode == 130
    assert said.endswith("cleaned\n")
