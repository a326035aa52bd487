"""Parameters of tests that aren't for every run."""

from __future__ import annotations

from typing import Any

import pytest


def long(*values: Any) -> list[Any]:
    """Values for which a test is marked `long`, beside one or two for which it isn't."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
