"""Fixtures for pytest: brokers with topics, and streams applications without a broker. They are there when Kohort is
installed, without imports.

Settings of all brokers come from pytest's configuration:

    [tool.pytest.ini_options]
    kohort_settings = ["num.partitions=3"]

Those of a single test's broker come from a marker:

    @pytest.mark.kohort({"log.segment.bytes": 1048576})
    def test_rolls(kohort_fresh_broker): ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar
from weakref import WeakKeyDictionary

import pytest

from kohort.testing.assertion_rewriting import leave_package_alone

leave_package_alone()  # before all others are imported

from kohort.testing.broker_log import BrokerLog  # noqa: E402
from kohort.testing.running import running, unwatch, watch  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark import StreamsApp
    from kohort.spark.testing import TestDriver
    from kohort.testing.broker import Broker
    from kohort.testing.filling import Filling
    from kohort.testing.process import BrokerProcess

B = TypeVar("B", "Broker", "BrokerProcess")

_INI: Final = "kohort_settings"
_SHARED: Final = "kohort_broker"
_IN_PROCESS: Final = ("kohort_fresh_broker", "kohort_secure_broker")
_OWN: Final = (*_IN_PROCESS, "kohort_broker_process")
"""The fixtures of brokers for one test."""

_MIXED_UP: Final = ("kohort_fresh_broker", "kohort_broker_process")
"""Those that clients reach with the same settings as `kohort_broker`, so that a mix-up isn't seen."""

_LOG: Final = pytest.StashKey[BrokerLog]()
_POSITION: Final = pytest.StashKey[int]()
_LOG_SIZES: Final = pytest.StashKey["WeakKeyDictionary[BrokerProcess, int]"]()
_STARTED_BY: Final = pytest.StashKey["WeakKeyDictionary[object, str]"]()
"""The fixtures that started brokers."""

_WARNED: Final = pytest.StashKey[bool]()

_NUMBERS: Final = pytest.StashKey[dict[str, int]]()

_LAST_LINES: Final = 200

_TWO_BROKERS: Final = (
    f"two brokers: the test takes {_SHARED} and {{other}}, itself or by its fixtures. What is written to one isn't in "
    "the other, and kohort_topic and kohort_group fill {other}. Leave one out; or, if both are meant, mark the test "
    'with @pytest.mark.filterwarnings("ignore:two brokers")'
)

_ANOTHER: Final = (
    f"two brokers: {{fixture}} fills {_SHARED}, and {{other}} runs, too. What is written to one isn't in the "
    "other. Fill yours by kohort.testing.Filling(broker, …); or, if both are meant, mark the test with "
    '@pytest.mark.filterwarnings("ignore:two brokers")'
)

_ALL_TESTS: Final = f"{_SHARED} is all tests': leave name= out, or take kohort_fresh_broker"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the configuration."""
    parser.addini(_INI, "settings of Kohort's brokers by Kafka's keys, as key=value", type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    config.addinivalue_line(
        "markers",
        "kohort(settings): settings by Kafka's keys of this test's own broker (kohort_fresh_broker and its like)",
    )
    config.stash[_STARTED_BY] = WeakKeyDictionary()
    config.stash[_LOG] = BrokerLog()
    watch(config.stash[_LOG].install)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leaves the loggers as they were."""
    if kept := config.stash.get(_LOG, None):
        unwatch(kept.install)
        kept.uninstall()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuses settings that no broker would take, and tells of a test with two brokers, of which it may mean one."""
    item.stash[_POSITION] = item.config.stash[_LOG].position
    item.stash[_LOG_SIZES] = WeakKeyDictionary({broker: broker.log_size for broker in _processes()})
    fixtures = getattr(item, "fixturenames", ())
    if _SHARED not in fixtures:
        return
    if not any(name in fixtures for name in _OWN):
        _refuse_marker(item)
    for other in _MIXED_UP:
        if other in fixtures:
            item.warn(pytest.PytestWarning(_TWO_BROKERS.format(other=other)))


@pytest.hookimpl(hookwrapper=True)  # which older versions of pytest know, too
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Adds what the brokers logged to the report of a test that fails."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        if text := item.config.stash[_LOG].since(item.stash.get(_POSITION, 0)):
            report.sections.append((f"Kohort's log {report.when}", text))
        sizes = item.stash.get(_LOG_SIZES, WeakKeyDictionary())
        for broker in _processes():
            if lines := broker.log(sizes.get(broker, 0)).splitlines()[-_LAST_LINES:]:
                report.sections.append((f"Kohort's log {report.when}, the broker's process", "\n".join(lines)))


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None]:
    """Notes which brokers a fixture starts."""
    before = running()
    yield
    for broker in running():
        if broker not in before:  # the fixtures that a fixture asks for meanwhile were here first
            request.config.stash[_STARTED_BY].setdefault(broker, fixturedef.argname)


@pytest.fixture(scope="session")
def kohort_broker(pytestconfig: pytest.Config) -> Iterator[Broker]:
    """A broker for the whole session, in this process; tests that share it use topics and groups of their own.

    With pytest-xdist each worker has one.
    """
    from kohort.testing.broker import Broker

    with _entered(lambda: Broker(_configured(pytestconfig))) as broker:
        yield broker


@pytest.fixture
def kohort_fresh_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A new broker for one test, in this process."""
    from kohort.testing.broker import Broker

    with _entered(lambda: Broker(_settings(request))) as broker:
        yield broker


@pytest.fixture
def kohort_secure_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A new broker for one test, in this process, with TLS, passwords and access rules: see `Broker.security`."""
    from kohort.testing.broker import Broker

    with _entered(lambda: Broker(_settings(request), secure=True)) as broker:
        yield broker


@pytest.fixture
def kohort_broker_process(request: pytest.FixtureRequest) -> Iterator[BrokerProcess]:
    """A new broker for one test, as a child process that can be killed and started again."""
    from kohort.testing.process import BrokerProcess

    with _entered(lambda: BrokerProcess(_settings(request))) as broker:
        yield broker


@pytest.fixture
def kohort_topic(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes topics on the test's broker, and returns their names: `kohort_topic([{"id": 1}], key="id", partitions=2)`.

    The broker is the test's own, if it has one, else `kohort_broker`. A file's path is relative to the test's folder; a
    name that isn't given is one that no other test has. See `kohort.testing.Filling.topic`.
    """
    from kohort.client.errors import ClientError
    from kohort.protocol.errors import ErrorCode, KafkaError

    filling = _filling(request)

    def topic(
        records: Any = (),
        *,
        name: str | None = None,
        partitions: int | None = None,
        key: str | None = None,
        configs: Mapping[str, object] | None = None,
    ) -> str:
        __tracebackhide__ = True  # the report ends with the line of the test
        if isinstance(records, Path):
            records = request.path.parent / records
        _warn_of_another(request)
        try:
            return filling.topic(records, name=name, partitions=partitions, key=key, configs=configs)
        except (ValueError, OSError, KafkaError, ClientError) as error:
            taken = isinstance(error, KafkaError) and error.code is ErrorCode.TOPIC_ALREADY_EXISTS
            hint = f"; {_ALL_TESTS}" if taken and not _own(request) else ""
            raise pytest.fail.Exception(f"kohort_topic: {error}{hint}") from None

    topic.__qualname__ = "kohort_topic"  # as Python's own errors about arguments call it
    return topic


@pytest.fixture
def kohort_group(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes groups that have read a topic but for its last records, and returns their names.

    As `kohort_group(topic, behind=3)`, on the broker that `kohort_topic` takes. See `kohort.testing.Filling.group`.
    """
    from kohort.client.errors import ClientError
    from kohort.protocol.errors import KafkaError

    filling = _filling(request)

    def group(topic: str, behind: int = 0, *, name: str | None = None) -> str:
        __tracebackhide__ = True
        _warn_of_another(request)
        try:
            return filling.group(topic, behind, name=name)
        except (ValueError, OSError, KafkaError, ClientError) as error:
            raise pytest.fail.Exception(f"kohort_group: {error}") from None

    group.__qualname__ = "kohort_group"
    return group


@pytest.fixture
def kohort_time(request: pytest.FixtureRequest) -> Broker:
    """The test's own broker, `kohort_fresh_broker` or `kohort_secure_broker`: `Broker.advance` moves its clock."""
    own = [name for name in _IN_PROCESS if name in request.fixturenames]
    if len(own) != 1:
        if "kohort_broker_process" in request.fixturenames:
            how = "not kohort_broker_process: the clock of another process can't be moved"
        elif _SHARED in request.fixturenames:
            how = f"not {_SHARED}"
        else:
            how = "too; a kohort.testing.Broker of your own has Broker.advance"
        _refuse(f"kohort_time moves the clock of a test's own broker: take one of {' and '.join(_IN_PROCESS)}, {how}")
    broker: Broker = request.getfixturevalue(own[0])
    return broker


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


def _refuse(reason: str) -> NoReturn:
    """Ends the test with a sentence: a traceback would lead into the plugin."""
    raise pytest.fail.Exception(reason, pytrace=False) from None  # the reason has said what another error says


def _refuse_marker(node: pytest.Item) -> None:
    """Refuses settings of a test that takes the broker of all tests."""
    if node.get_closest_marker("kohort"):
        _refuse(
            f"@pytest.mark.kohort has settings for a broker of the test's own, and {_SHARED} is all tests': take "
            f"kohort_fresh_broker, or say it for all by {_INI}"
        )


@contextmanager
def _entered(make: Callable[[], B]) -> Iterator[B]:
    """Runs a broker; or says in a sentence why it can't run."""
    from kohort.broker.config import ConfigError
    from kohort.extras import MissingExtraError

    with ExitStack() as stack:
        try:
            broker = stack.enter_context(make())
        except (ConfigError, MissingExtraError, OSError, RuntimeError) as error:
            _refuse(f"the broker can't run: {error}")
        yield broker


def _filling(request: pytest.FixtureRequest) -> Filling:
    from kohort.testing.filling import Filling

    own = _own(request)
    if len(own) > 1:
        _refuse(f"the test has several brokers, {' and '.join(own)}: fill each by kohort.testing.Filling(broker, …)")
    if not own:
        _refuse_marker(request.node)
    broker = request.getfixturevalue(own[0] if own else _SHARED)
    numbers = request.config.stash.setdefault(_NUMBERS, {})
    name = re.sub(r"[^\w.-]+", "-", request.node.name, flags=re.ASCII)[:100].strip("-")
    numbers[name] = number = numbers.get(name, 0) + 1
    return Filling(broker, f"{name}-{number}")


def _warn_of_another(request: pytest.FixtureRequest) -> None:
    """Tells, once a test, of a broker beside `kohort_broker` that the test may mean."""
    __tracebackhide__ = True
    shared = None if _own(request) else request.getfixturevalue(_SHARED)
    brokers = running()
    if shared not in brokers or request.node.stash.get(_WARNED, False):
        return  # not there if a project has a fixture of that name which gives a KohortContainer
    for broker in brokers:
        name = request.config.stash[_STARTED_BY].get(broker)
        if broker is not shared and (name is None or name in request.fixturenames):
            request.node.stash[_WARNED] = True
            other = "another" if name is None else f"the one of the fixture {name}"
            request.node.warn(pytest.PytestWarning(_ANOTHER.format(fixture=request.fixturename, other=other)))
            return


def _processes() -> list[BrokerProcess]:
    """The brokers that run as child processes."""
    if not (brokers := running()):
        return []
    from kohort.testing.process import BrokerProcess

    return [broker for broker in brokers if isinstance(broker, BrokerProcess)]


def _own(request: pytest.FixtureRequest) -> list[str]:
    return [name for name in _OWN if name in request.fixturenames]


def _settings(request: pytest.FixtureRequest) -> dict[str, object]:
    return _configured(request.config) | _marked(request)


def _configured(config: pytest.Config) -> dict[str, object]:
    settings: dict[str, object] = {}
    for line in config.getini(_INI):
        key, equals, value = line.partition("=")
        if not equals:
            _refuse(f"{_INI}: {line!r} isn't key=value")
        settings[key.strip()] = value.strip()
    return settings


def _marked(request: pytest.FixtureRequest) -> dict[str, object]:
    settings: dict[str, object] = {}
    for mark in reversed(list(request.node.iter_markers("kohort"))):  # the closest marker last, so that it overrides
        if mark.kwargs or not all(isinstance(given, Mapping) for given in mark.args):
            _refuse('@pytest.mark.kohort takes a dict of settings: {"num.partitions": 3}')
        for given in mark.args:
            settings |= given
    return settings
