"""pandas is loaded when something imports it, not when pyarrow makes its first array.

pyarrow then imports it to check whether it was given one of pandas' own. That takes half a second and 30 MiB.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is loaded later")
        return None


class _TellingPyarrow(MetaPathFinder):
    """Finds pandas as the others do; pyarrow hears when it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "pandas":
            return None
        others = (each for each in sys.meta_path if each is not self)
        spec = next((found for each in others if (found := each.find_spec(fullname, path, target))), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_tell(module: ModuleType) -> None:
                load(module)
                _tell_pyarrow()

            spec.loader.exec_module = load_and_tell  # type: ignore[method-assign]
        return spec


def load_pandas_later() -> None:
    """Has pyarrow believe that there is no pandas, until something imports it."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    hidden = _NoPandas()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([])  # it looks for pandas once
    finally:
        sys.meta_path.remove(hidden)
    sys.meta_path.insert(0, _TellingPyarrow())


def _tell_pyarrow() -> None:
    import pyarrow as pa

    pa.table({"": [0]}).to_pandas()  # where it needs pandas, it looks again
