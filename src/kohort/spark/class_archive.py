"""An archive of Spark's classes, which spares the JVM reading and checking them at each start.

    builder.config("spark.driver.extraJavaOptions", jvm_options())

`kohort apps class-archive` makes it, once for a version of Java and of Spark: see docs/running.md. The JVM itself
checks whether an archive fits what it is started with, and does without one that doesn't.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["archive_path", "jvm_options"]

# What the JVM says of an archive that doesn't fit is nothing that can be helped where it is used.
_USE: Final = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def jvm_options() -> str:
    """Options of Spark's JVM with which it uses the archive; "" where there is none for this Java and this Spark."""
    path = archive_path()
    if path is None or not path.is_file():
        return ""
    return f"{option('SharedArchiveFile', path)} {_USE}"


def archive_path() -> Path | None:
    """Where the archive of this Java and this Spark is, or would be: in the user's cache directory.

    None where either can't be found, or the JVM doesn't say which it is.
    """
    java, jars = _java_home(), _spark_jars()
    if java is None or jars is None:
        return None
    try:
        identity = hashlib.sha256((java / "release").read_bytes())
        for each in [*sorted((java / "lib" / "server").glob("libjvm.*")), *sorted(jars.iterdir())]:
            state = each.stat()
            identity.update(f"{each}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
        cache = os.environ.get("XDG_CACHE_HOME")
        directory = Path(cache) if cache else Path.home() / ".cache"
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None
    return directory / "kohort" / "classes" / f"{identity.hexdigest()[:20]}.jsa"


def option(name: str, path: Path) -> str:
    """A JVM's option with a path, as Spark's settings have it: in quotes where the path has blanks or quotes."""
    text = f"-XX:{name}={path}"
    if any(each.isspace() or each in "\"'\\" for each in text):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return text


def _java_home() -> Path | None:
    """That of the Java which PySpark would start."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home).resolve()
    java = shutil.which("java")
    return None if java is None else Path(java).resolve().parents[1]


def _spark_jars() -> Path | None:
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "jars"
