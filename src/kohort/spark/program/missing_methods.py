"""Says what to write instead of a method that is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar


class Advised:
    """A class whose missing attributes are AttributeErrors that say what to write instead.

    Attributes:
        instead: what to write, whatever is missing.
    """

    instead: ClassVar[str]

    if not TYPE_CHECKING:  # a type checker has to see what is missing

        def __getattr__(self, name: str) -> Any:
            what = f"{type(self).__name__} has no {name!r}"
            if name.startswith("_"):  # asked for by Python itself, as by copy and pickle
                raise AttributeError(what)
            raise AttributeError(f"{what}: {self._advice(name)}")

    def _advice(self, name: str) -> str:
        return self.instead


def of_a_dataframe(name: str) -> bool:
    """Whether DataFrames have such an attribute."""
    from pyspark.sql import DataFrame

    return hasattr(DataFrame, name)
