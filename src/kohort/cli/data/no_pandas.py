"""Importing pyarrow without pandas, which takes long to import."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is left out")
        return None


def without_pandas() -> None:
    """Makes pyarrow believe that pandas isn't installed, unless it is imported already.

    pyarrow imports pandas with the first array that it makes, to check whether it was given one of pandas' own. That
    takes half a second, most of the time of a short command, and commands don't use pandas.
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
