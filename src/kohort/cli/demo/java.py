"""Checking for a Java runtime that Spark can use."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from kohort.cli.client.java_version import java_version
from kohort.cli.demo.errors import DemoError

_OLDEST: Final = 17
_REMEDY: Final = "Install one (Debian, Ubuntu: apt-get install default-jre-headless), or point JAVA_HOME at one."


def check_java() -> None:
    """Checks the Java runtime that PySpark would start.

    Raises:
        DemoError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise DemoError(f"Spark needs a Java runtime, version {_OLDEST} or newer, and there is none.\n{_REMEDY}")
    try:
        process = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        where = f" (from JAVA_HOME={home})" if home else ""
        raise DemoError(f"can't start {java}{where}: {error}\n{_REMEDY}") from None
    version = java_version(process.stderr + process.stdout)
    if version is None or version < _OLDEST:
        raise DemoError(
            f"{java} is Java {version or 'of an unknown version'}; Spark needs {_OLDEST} or newer.\n{_REMEDY}"
        )
