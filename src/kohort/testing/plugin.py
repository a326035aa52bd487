"""Fixtures for pytest: brokers, and streams applications without one. They are there when Kohort is installed, without
imports.

Settings of all brokers come from pytest's configuration, those of a single test's broker from a marker:

    [tool.pytest.ini_options]
    kohort_settings = ["num.partitions=3"]

    @pytest.mark.kohort({"log.segment.bytes": 1048576})
    def test_rolls(kohort_fresh_broker): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark import StreamsApp
    from kohort.spark.testing import TestDriver
    from kohort.testing.broker import Broker
    from kohort.testing.process import BrokerProcess

_INI = "kohort_settings"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the configuration."""
    parser.addini(_INI, "settings of Kohort's brokers by Kafka's keys, as key=value", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        "kohort(settings): settings by Kafka's keys of this test's own broker (kohort_fresh_broker and its like)",
    )


@pytest.fixture(scope="session")
def kohort_broker(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """A broker for the whole session, in this process; tests that share it use topics and groups of their own."""
    from kohort.testing.broker import Broker

    with Broker(_configured(pytestconfig)) as broker:
        yield broker


@pytest.fixture
def kohort_fresh_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A new broker for one test, in this process."""
    from kohort.testing.broker import Broker

    with Broker(_configured(request.config) | _marked(request)) as broker:
        yield broker


@pytest.fixture
def kohort_secure_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A new broker for one test, in this process, with TLS, passwords and access rules: see `Broker.security`."""
    from kohort.testing.broker import Broker

    with Broker(_configured(request.config) | _marked(request), secure=True) as broker:
        yield broker


@pytest.fixture
def kohort_broker_process(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A new broker for one test, as a child process that can be killed and started again."""
    from kohort.testing.process import BrokerProcess

    with BrokerProcess(_configured(request.config) | _marked(request)) as broker:
        yield broker


@pytest.fixture(scope="session")
def kohort_spark() -> Iterator[SparkSession]:
    """A local Spark session for the whole session of pytest; or the one that there is. Needs the extra `spark`."""
    from kohort.spark.testing.session import active_session, local_session

    before = active_session()
    session = local_session()
    yield session
    if before is None:
        session.stop()


@pytest.fixture
def kohort_test_driver(kohort_spark: SparkSession) -> Iterator[Callable[..., TestDriver]]:
    """Makes test drivers of applications, which run until the test ends: `kohort_test_driver(app, partitions=2)`."""
    from kohort.spark.testing import TestDriver

    with ExitStack() as stack:

        def start(app: StreamsApp, **options: Any) -> TestDriver:
            return stack.enter_context(TestDriver(app, kohort_spark, **options))

        yield start


def _configured(config: pytest.Config) -> dict[str, object]:
    settings: dict[str, object] = {}
    for line in config.getini(_INI):
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{_INI}: {line!r} isn't key=value")
        settings[key.strip()] = value.strip()
    return settings


def _marked(request: pytest.FixtureRequest) -> dict[str, object]:
    settings: dict[str, object] = {}
    for mark in reversed(list(request.node.iter_markers("kohort"))):  # the closest marker last, so that it overrides
        if mark.kwargs or not all(isinstance(given, dict) for given in mark.args):
            raise pytest.UsageError('@pytest.mark.kohort takes a dict of settings: {"num.partitions": 3}')
        for given in mark.args:
            settings |= given
    return settings
