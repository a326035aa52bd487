"""What tests of the console share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kohort.testing import Broker


@pytest.fixture(scope="module")
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where a broker is, that all tests of a file have; with what the file's `fill` puts there."""
    with Broker() as broker:
        asyncio.run(request.module.fill(broker.bootstrap_servers))
        yield broker.bootstrap_servers
