"""Tests of streams applications without a broker: rows in, rows out, stores, and a clock that the test moves.

    from kohort.spark.testing import TestDriver

    with TestDriver(app) as driver:
        driver.pipe("flights", [{"origin": "JFK", "dep_delay": 12}])
        assert driver.output("delays-by-origin") == [{"origin": "JFK", "n": 1}]

Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kohort.spark.testing.driver import TestDriver
    from kohort.spark.testing.output import OutputRows
    from kohort.spark.testing.queue_driver import QueueDriver
    from kohort.spark.testing.session import local_session
    from kohort.spark.testing.store_view import StoreView

__all__ = ["OutputRows", "QueueDriver", "StoreView", "TestDriver", "local_session"]

_HOME: Final = {
    "OutputRows": "output",
    "QueueDriver": "queue_driver",
    "StoreView": "store_view",
    "TestDriver": "driver",
    "local_session": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
