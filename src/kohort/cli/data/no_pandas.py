"""Keeps pandas out of a command that has no use for it."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec

__all__ = ["leave_pandas_out"]


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out")
        return None


def leave_pandas_out() -> None:
    """Have pyarrow believe that pandas isn't installed, unless it is imported already.

    pyarrow imports pandas with the first array that it makes, to find out whether it was given one of pandas' own. That
    takes half a second, most of what a short command takes; nobody in a command's process has anything of pandas.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([])
    finally:
        sys.meta_path.remove(finder)
