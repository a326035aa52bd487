from __future__ import annotations

from tests.broker.handlers.conftest import ask, broker, settings

__all__ = ["ask", "broker", "settings"]
