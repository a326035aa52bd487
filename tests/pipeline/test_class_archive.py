"""The archive of Spark's classes is made, and a session of another process uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import JAVA

SESSION = """
from pathlib import Path
from kohort.spark.testing import local_session

session = local_session()
java = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
maps = Path(f"/proc/{java}/maps").read_text().splitlines()
print("mapped:", *{line.split()[-1] for line in maps if "/kohort/" in line})
"""


@pytest.mark.long
def test_a_session_uses_the_archive_that_was_made(tmp_path: Path) -> None:
    JAVA.require()
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def run(*command: str) -> str:
        return subprocess.run(
            [sys.executable, *command], env=environment, capture_output=True, text=True, check=True, timeout=250
        ).stdout

    run("-m", "kohort.cli", "apps", "class-archive")
    (archive,) = (tmp_path / "kohort" / "classes").iterdir()
    assert f"mapped: {archive}" in run("-W", "ignore", "-c", SESSION)
