"""Brokers for tests, in this process or as a child process that can be killed; and fixtures for pytest.

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kohort.testing.broker import Broker
    from kohort.testing.container import KohortContainer
    from kohort.testing.filling import Filling
    from kohort.testing.process import BrokerProcess
    from kohort.testing.records import NewRecord
    from kohort.testing.secured import Login, Security

__all__ = ["Broker", "BrokerProcess", "Filling", "KohortContainer", "Login", "NewRecord", "Security"]

_MODULES = {
    "Broker": "kohort.testing.broker",
    "BrokerProcess": "kohort.testing.process",
    "Filling": "kohort.testing.filling",
    "KohortContainer": "kohort.testing.container",
    "Login": "kohort.testing.secured",
    "NewRecord": "kohort.testing.records",
    "Security": "kohort.testing.secured",
}


def __getattr__(name: str) -> object:
    """Imports lazily: pytest imports this package in every run, most of which have no broker."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
