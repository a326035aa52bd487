"""What a fresh root gets of this machine, and that nothing that ran in one outlives us."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fresh.__main__ import RUNS, TABLE_OF_MISSING, can_mount, here, is_silent
from tests.fresh.machine import (
    KEYRING,
    Machine,
    MirrorError,
    apt_settings,
    as_ini,
    copy,
    keyring_of,
    mirror_of,
    paths,
    pip_settings,
    sites_of,
)
from tests.fresh.roots import RELEASES
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


def test_pip_settings_are_those_of_files() -> None:
    listed = (
        ":env:.timeout='9'\nglobal.cert='/a b.pem'\nglobal.extra-index-url='one\\ntwo'\ninstall.no-compile='true'\n"
    )
    found = pip_settings(listed)
    assert found == {"global": {"cert": "/a b.pem", "extra-index-url": "one\ntwo"}, "install": {"no-compile": "true"}}
    assert as_ini(found) == "[global]\ncert = /a b.pem\nextra-index-url = one\n    two\n[install]\nno-compile = true\n"


def test_apt_settings_are_those_that_say_how_to_fetch() -> None:
    dump = 'Acquire "";\nAcquire::http::Proxy "p";\nAcquire::IndexTargets::deb "";\nAcquire::Check-Date "false";\n'
    assert apt_settings(dump) == 'Acquire "";\nAcquire::http::Proxy "p";\nAcquire::Check-Date "false";\n'


def test_the_mirror_is_that_of_a_release() -> None:
    assert mirror_of({"nodistro": "a", "bookworm-security": "b", "bookworm": "c"}) == "c"
    with pytest.raises(MirrorError, match="apt knows no mirror of Debian"):
        mirror_of({"noble": "a"})


def test_who_else_has_a_release_of_that_name_is_no_mirror() -> None:
    told = "a bookworm Debian\nb stable Google LLC\nc bookworm Docker\ne ./\nd bookworm-updates Debian\n"
    assert sites_of(told) == {"bookworm": "a", "bookworm-updates": "d"}


def machine(**changed: object) -> Machine:
    told = {"mirror": "m", "updates": True, "security": "s", "keyring": Path("/k"), "apt": "", "pip": "", "files": ()}
    return Machine(**{**told, "environment": {}, **changed})  # type: ignore[arg-type]


def test_sources_are_those_of_the_release_that_is_made() -> None:
    wanted = ("m trixie", "m trixie-updates", "s trixie-security")
    assert machine().sources("trixie") == "".join(f"deb [signed-by=/k] {suite} main\n" for suite in wanted)
    assert machine(updates=False, security=None).sources("trixie") == "deb [signed-by=/k] m trixie main\n"


def test_the_keyring_is_the_one_that_the_source_names() -> None:
    paragraphs = "URIs: other\nSigned-By: /other\n\nURIs: mirror\nSigned-By: /mine\n"
    lines = "deb [signed-by=/other] other x main\ndeb [arch=amd64 signed-by=/mine] mirror x main\n"
    for text in (paragraphs, lines):
        assert keyring_of("mirror", [text]) == Path("/mine")
    assert keyring_of("mirror", ["deb mirror x main\n"]) == KEYRING


def test_files_that_settings_name_are_copied_where_they_are_not(tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "a.whl").touch()
    (tmp_path / "ca.pem").write_text("mine")
    named = [f"{tmp_path}/wheels  {tmp_path}/none", f"{tmp_path}/ca.pem", "60", "relative"]
    assert list(paths(named)) == [tmp_path / "wheels", tmp_path / "ca.pem"]
    options = [f"-Xmx1g -Djavax.net.ssl.trustStore={tmp_path}/ca.pem", f'Acquire::https::CAInfo "{tmp_path}/ca.pem";\n']
    assert list(paths(options)) == [tmp_path / "ca.pem"] * 2
    copy(tmp_path / "wheels", tmp_path / "root/deep/wheels")
    assert (tmp_path / "root/deep/wheels/a.whl").exists()
    (tmp_path / "root/ca.pem").write_text("theirs")
    copy(tmp_path / "ca.pem", tmp_path / "root/ca.pem")
    assert (tmp_path / "root/ca.pem").read_text() == "theirs"


def test_the_pythons_that_are_named_are_those_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: Python :: 3\.", each)]
    assert named == [release.python for release in RELEASES]


def test_without_root_a_sentence_says_so() -> None:
    script = """
        import os, sys
        os.geteuid = lambda: 1000
        from tests.fresh.__main__ import main
        sys.exit(main())
    """
    hindered(script, "make test-fresh needs root")


def test_without_a_mirror_of_debian_a_sentence_says_so() -> None:
    """As on Ubuntu, which has debootstrap, too."""
    script = """
        import os, sys
        from tests.fresh import __main__ as fresh, machine
        from tests.tools import Tool
        os.geteuid, fresh.install, fresh.can_mount = lambda: 0, lambda tools: None, lambda: True
        fresh.enough_space, fresh.DEBOOTSTRAP = lambda *_: True, Tool("debootstrap", "", (), lambda: True)
        machine.printed = lambda *command: ""
        sys.exit(fresh.main())
    """
    hindered(script, "apt knows no mirror of Debian")


def hindered(script: str, why: str) -> None:
    """Told in a line, which is a failure; unless there is something else to do, which may be one."""
    for options, code in (([], 1), (["--otherwise", "true"], 0), (["--otherwise", "exit 3"], 3)):
        command = [sys.executable, "-c", textwrap.dedent(script), *options]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert (done.returncode, done.stderr) == (code, "")
        assert done.stdout.startswith(why) and done.stdout.count("\n") == 1


def test_the_table_of_what_was_left_out_is_found_in_a_log() -> None:
    table = "    Tests that were left out   \n┏━━┓\n┃ x┃\n┡━━┩\n│ 1│\n└──┘\n"
    found = TABLE_OF_MISSING.search(f"before\n{table}3 tests passed\n")
    assert found and found[0] == table


ADDRESS = "   the console shows all that happens: http://127.0.0.1:41234/group?id=flight-delays"


def test_the_demo_has_to_say_where_the_console_is() -> None:
    assert [name for name, (command, _) in RUNS.items() if is_silent(command, "broker on 127.0.0.1")] == [
        "demo",
        "both",
    ]
    assert not any(is_silent(command, f"before\n{ADDRESS}\nafter") for command, _ in RUNS.values())


@pytest.mark.parametrize(("command", "code"), [("make demo", 1), (f"make demo; echo '{ADDRESS}'", 0), ("exit 3", 3)])
def test_so_does_the_demo_on_this_machine(
    command: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "make").write_text("#!/bin/sh\necho made\n")
    (tmp_path / "make").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert here(command) == code
    assert ("hasn't said" in capsys.readouterr().out) == (code == 1)


@pytest.mark.skipif(os.geteuid() != 0 or not can_mount(), reason="a process can have mounts of its own only for root")
def test_what_runs_in_a_root_ends_with_us(tmp_path: Path) -> None:
    """Also another user's: a change of the user takes the parent's death signal away."""
    sleep = f"sleep 600.{os.getpid()}"
    inside = f"setpriv --reuid=1000 --clear-groups {sleep}; exit $?"
    script = f"""
        import sys
        from pathlib import Path
        from tests.fresh.roots import ALONE, run_logged
        run_logged([*ALONE, "sh", "-c", {inside!r}], Path({str(tmp_path / "log")!r}), {{"PATH": "/usr/bin:/bin"}})
    """
    runner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT)
    eventually(lambda: running(sleep), what="it runs")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    eventually(lambda: not running(sleep), what="it has ended")


def running(command: str) -> bool:
    """Whether a process has this command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            if file.read_text().rstrip("\0").split("\0") == command.split():
                return True
    return False
