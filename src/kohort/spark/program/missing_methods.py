"""What to write instead of a method that isn't there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

__all__ = ["Advised"]


class Advised:
    """A class whose missing attributes are AttributeErrors that say what to write instead.

    Attributes:
        instead: that, of all that the class hasn't got.
    """

    instead: ClassVar[str]

    if not TYPE_CHECKING:  # to a type checker, nothing that is missing is there

        def __getattr__(self, name: str) -> Any:
            what = f"{type(self).__name__} has no {name!r}"
            if name.startswith("_"):  # asked for by Python itself, as by copy and pickle
                raise AttributeError(what)
            raise AttributeError(f"{what}: {self._advice(name)}")

    def _advice(self, name: str) -> str:
        return self.instead


def of_a_dataframe(name: str) -> bool:
    """Whether DataFrames have this."""
    from pyspark.sql import DataFrame

    return hasattr(DataFrame, name)
