"""`kohort apps class-archive`, as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kohort.spark.class_archive import archive_path
from kohort.spark.errors import ApplicationError
from kohort.spark.testing import class_training
from tests.cli.support import invoke
from tests.tools import JAVA


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    JAVA.require()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = archive_path()
    assert found is not None
    return found


def test_options_are_printed_once_there_is_an_archive(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = invoke("apps", "class-archive", "--options")
    assert said.exit_code == 1
    assert "make it with kohort apps class-archive" in said.stderr

    def make() -> Path:
        cache.parent.mkdir(parents=True)
        cache.write_bytes(bytes(3 * 2**20))
        return cache

    monkeypatch.setattr(class_training, "make_archive", make)
    assert invoke("apps", "class-archive").stdout == f"{cache} has 3 MiB\n"
    said = invoke("apps", "class-archive", "--options")
    assert said.stdout.startswith(f"-XX:SharedArchiveFile={cache} ")


def test_what_goes_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> Path:
        raise ApplicationError("can't write: disk full")

    monkeypatch.setattr(class_training, "make_archive", make)
    said = invoke("apps", "class-archive")
    assert (said.exit_code, said.stderr) == (1, "error: can't write: disk full\n")
