"""The extras of the package (`pip install 'kohort[arrow]'`), and what says that one is missing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

__all__ = [
    "ARROW",
    "CONSOLE",
    "OPENTELEMETRY",
    "PIPELINE",
    "PROTOBUF",
    "SECURITY",
    "SPARK",
    "MissingExtraError",
    "are_installed",
    "require",
]

ARROW: Final = ("numba", "numpy", "pyarrow")
CONSOLE: Final = ("aiohttp", "jinja2")
OPENTELEMETRY: Final = ("opentelemetry",)  # the API; an SDK may be another's
PROTOBUF: Final = ("grpc_tools",)  # which brings google.protobuf
SECURITY: Final = ("cryptography", "jwt")
PIPELINE: Final = "pyspark_kohort"  # of the distribution kohort-spark, which has all that is in kohort.spark, too
SPARK: Final = (PIPELINE, *ARROW, *SECURITY, "aiohttp", "fastavro", "pandas", "pyspark", "rocksdict")

_DISTRIBUTIONS: Final = {
    "grpc_tools": "grpcio-tools",
    "jinja2": "Jinja2",
    "jwt": "PyJWT",
    "opentelemetry": "opentelemetry-api",
    PIPELINE: "kohort-spark",
    "yaml": "PyYAML",
}


class MissingExtraError(ImportError):
    """Something needs packages that only an extra brings."""


def are_installed(packages: Sequence[str]) -> bool:
    """Whether packages can be imported, without importing them."""
    return not _missing(packages)


def require(extra: str, what: str, packages: Sequence[str]) -> None:
    """Checks that packages are installed, without importing them.

    Args:
        extra: what brings them.
        what: what needs them, such as "sending Arrow tables".
        packages: names to import.

    Raises:
        MissingExtraError: some aren't; says which, and what to install.
    """
    if missing := [_DISTRIBUTIONS.get(name, name) for name in _missing(packages)]:
        named = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
        raise MissingExtraError(f"{what} needs {named}: pip install 'kohort[{extra}]'")


def _missing(packages: Sequence[str]) -> list[str]:
    return [name for name in packages if find_spec(name) is None]
