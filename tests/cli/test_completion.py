"""What a shell completes when somebody presses Tab."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.cli import _run
from kohort.cli.client import completion
from kohort.client.types import TopicPartition
from tests.cli.administering import Cluster, cluster
from tests.client.administration.members import join_classic, join_streams


@pytest.fixture(scope="module")
def at() -> Iterator[Cluster]:
    with cluster() as found:
        found.ok("topics", "create", "flights", "flowers", "weather")
        asyncio.run(join_classic(found.servers, "readers", TopicPartition("flights", 0)))
        asyncio.run(join_streams(found.servers, "delays", "flights"))
        yield found


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(
    at: Cluster, shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "_PATIENCE_S", 60)
    typed = {"_KOHORT_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "kohort groups describe "}
    typed |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "KOHORT_BOOTSTRAP_SERVERS": at.servers}
    for name, value in typed.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        _run([])
    said = capsys.readouterr().out
    assert "delays" in said and "readers" in said


PATIENT = "from kohort.cli import main; from kohort.cli.client import completion; completion._PATIENCE_S = 60; main()"


def completed(line: str, servers: str, *start: str) -> tuple[list[str], str]:
    """What bash is given for a line, and what its user sees of errors.

    Args:
        start: how Python is started.
    """
    done = subprocess.run(
        [sys.executable, *start],
        capture_output=True,
        text=True,
        env=os.environ | completing(line, servers),
        timeout=100,
    )
    return sorted(done.stdout.split()), done.stderr


def completing(line: str, servers: str) -> dict[str, str]:
    """The environment in which bash has it complete a line."""
    typed = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return {"_KOHORT_COMPLETE": "complete_bash", "KOHORT_BOOTSTRAP_SERVERS": servers, **typed}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kohort topics describe fl", ["flights", "flowers"]),
        ("kohort topics delete flights fl", ["flowers"]),
        ("kohort topics delete-records w", ["weather"]),
        ("kohort consume f", ["flights", "flowers"]),
        ("kohort produce flo", ["flowers"]),
        ("kohort groups describe ", ["delays", "readers"]),
        ("kohort apps describe ", ["delays"]),
        ("kohort place --from-group ", ["delays"]),
        ("kohort configs describe topic we", ["weather"]),
        ("kohort configs describe group re", ["readers"]),
        ("kohort configs describe b", ["broker", "broker-logger"]),
        ("kohort groups list --type s", ["share", "streams"]),
        ("kohort produce flights --format ", ["csv", "json", "lines", "parquet", "records"]),
        ("kohort consume flights --isolation read_c", ["read_committed"]),
    ],
)
def test_names_and_words(
    at: Cluster, line: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "_PATIENCE_S", 60)
    for name, value in completing(line, at.servers).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        _run([])
    out, err = capsys.readouterr()
    assert (sorted(out.split()), err) == (words, "")


def test_names_of_clusters_and_what_is_in_them(at: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kohort").mkdir()
    (tmp_path / "kohort" / "clusters.toml").write_text(
        f'[here]\nbootstrap.servers = "{at.servers}"\n[hence]\nbootstrap.servers = "127.0.0.1:1"\n'
    )
    nowhere = "127.0.0.1:1"
    assert completed("kohort topics list --cluster he", nowhere, "-c", PATIENT) == (["hence", "here"], "")
    assert completed("kohort clusters show her", nowhere, "-c", PATIENT) == (["here"], "")
    assert completed("kohort topics describe -c here fl", nowhere, "-c", PATIENT) == (["flights", "flowers"], "")


@pytest.mark.parametrize("servers", ["closed", "not an address"])
def test_without_a_cluster_there_is_nothing_and_no_error(servers: str) -> None:
    if servers == "closed":
        with socket.create_server(("127.0.0.1", 0)) as taken:
            servers = f"127.0.0.1:{taken.getsockname()[1]}"
    assert completed("kohort topics describe ", servers, "-m", "kohort.cli") == ([], "")
