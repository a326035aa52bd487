"""The archive of Spark's classes: where it is, for which Java and Spark, and that none is left that isn't whole."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kohort.spark.class_archive import archive_path, jvm_options, option
from kohort.spark.errors import ApplicationError
from kohort.spark.testing import class_training


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java, and a Spark, that nobody could start."""
    java, spark = tmp_path / "java", tmp_path / "spark"
    for directory in (java / "lib" / "server", spark / "jars"):
        directory.mkdir(parents=True)
    (java / "release").write_text('JAVA_VERSION="17.0.15"\n')
    (java / "lib" / "server" / "libjvm.so").write_bytes(b"jvm")
    (spark / "jars" / "spark-core.jar").write_bytes(b"jar")
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("SPARK_HOME", str(spark))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return java


def path() -> Path:
    found = archive_path()
    assert found is not None
    return found


def test_each_java_and_each_spark_has_an_archive_of_its_own(java: Path, tmp_path: Path) -> None:
    found = [path()]
    (java / "release").write_text('JAVA_VERSION="17.0.16"\n')
    found.append(path())
    (java / "lib" / "server" / "libjvm.so").write_bytes(b"another jvm")
    found.append(path())
    (tmp_path / "spark" / "jars" / "more.jar").write_bytes(b"")
    found.append(path())
    assert len(set(found)) == 4
    assert {each.parent for each in found} == {tmp_path / "cache" / "kohort" / "classes"}
    assert path() == found[-1]


def test_options_name_the_archive_once_there_is_one(java: Path) -> None:
    assert jvm_options() == ""
    path().parent.mkdir(parents=True)
    path().touch()
    assert f"-XX:SharedArchiveFile={path()}" in shlex.split(jvm_options())


def test_there_is_none_for_a_java_that_does_not_say_its_version(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (java / "release").unlink()
    assert (archive_path(), jvm_options()) == (None, "")
    with pytest.raises(ApplicationError, match="there is no Java whose version is known"):
        class_training.make_archive()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    assert archive_path() is None


@pytest.mark.parametrize("name", ["/a b/c", '/a"b', "/a'b", "/a\\b"])
def test_a_path_of_any_characters_is_one_option(name: str) -> None:
    assert shlex.split(option("SharedArchiveFile", Path(name))) == [f"-XX:SharedArchiveFile={name}"]


@pytest.mark.parametrize("written", [None, b"", b"\0\0\0\0rest"])
def test_an_archive_that_was_not_finished_is_none(
    java: Path, monkeypatch: pytest.MonkeyPatch, written: bytes | None
) -> None:
    def train(file: Path) -> str:
        if written is not None:
            file.write_bytes(written)
        return "No space left on device"

    monkeypatch.setattr(class_training, "_train", train)
    with pytest.raises(ApplicationError, match="No space left"):
        class_training.make_archive()
    assert list(path().parent.iterdir()) == []


def test_an_archive_takes_the_place_of_the_one_before(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path().parent.mkdir(parents=True)
    path().write_bytes(b"before")

    def train(file: Path) -> str:
        assert path().read_bytes() == b"before"
        file.write_bytes(b"whole")
        return ""

    monkeypatch.setattr(class_training, "_train", train)
    assert class_training.make_archive() == path()
    assert [each.read_bytes() for each in path().parent.iterdir()] == [b"whole"]


def test_a_directory_that_cannot_be_written_is_told(java: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ApplicationError, match="can't write"):
        class_training.make_archive()


def test_a_session_that_fails_is_told_with_what_it_said(java: Path) -> None:
    with pytest.raises(ApplicationError, match=r"(?s)the session in which it is made failed.*java"):
        class_training.make_archive()


def test_an_interruption_leaves_nothing_that_java_writes_later(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, wrote, begun = tmp_path / "python", tmp_path / "wrote", tmp_path / "begun"
    program.write_text(
        "#!/bin/sh\nfor file; do :; done\n"
        f"(while kill -0 $$; do sleep 0.02; done; echo half > $file; echo > {wrote}) 2>/dev/null &\n"
        f"echo > {begun}; exec sleep 1000\n"
    )
    program.chmod(0o755)

    class Interrupted(subprocess.Popen[str]):
        """Whose user presses Ctrl+C once it runs."""

        def communicate(self, *arguments: Any, **more: Any) -> Any:
            if self.poll() is None:
                while not begun.exists():
                    time.sleep(0.01)
                raise KeyboardInterrupt
            return super().communicate(*arguments, **more)

    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        class_training.make_archive()
    assert wrote.exists()
    assert list(path().parent.iterdir()) == []


def test_archives_that_nothing_uses_are_removed(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory, now, day = path().parent, time.time(), 86_400
    directory.mkdir(parents=True)
    ages = {"old.jsa": 91, "used.jsa": 89, "old.1.part": 0.1, "begun.2.part": 0.001, "other.txt": 400}
    for name, days in ages.items():
        (directory / name).touch()
        os.utime(directory / name, (now - days * day, now - max(days, 89) * day))

    def train(file: Path) -> str:
        assert not (directory / "old.1.part").exists()
        file.write_bytes(b"whole")
        return ""

    monkeypatch.setattr(class_training, "_train", train)
    class_training.make_archive()
    assert {each.name for each in directory.iterdir()} == {path().name, "used.jsa", "begun.2.part", "other.txt"}
