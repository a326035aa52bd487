"""Servers and topics for the tests with real clients; what a server complained about is shown with a failure."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.tools import MAVEN

from .clients import CLIENTS, LIBRARIES, Client
from .java.build import MAVEN_S
from .java.jvm import Tools
from .members import Members
from .newest_kafka import NewestKafka, running
from .secured import SecureKohort
from .servers import Server, new_server
from .streams_apps import Fleet, Garage, open_garage
from .topics import create_topic

SHOWN = pytest.StashKey[dict[Server, int]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(MAVEN_S))


@pytest.fixture(scope="session")
def session_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = new_server(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture
def server(session_server: Server, request: pytest.FixtureRequest) -> Server:
    """The one server of the session, shared by all tests of a worker."""
    watch(request.node, session_server)
    return session_server


@pytest.fixture(scope="session")
def newest_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewestKafka]:
    """Apache Kafka's newest release, with groups of all types."""
    MAVEN.require()
    with running(NewestKafka(tmp_path_factory.mktemp("newest-kafka") / "node")) as node:
        yield node


BROKERS = {"kohort": "session_server", "kafka": "newest_kafka", "secure kafka": "secure_kafka"}


@pytest.fixture(params=["kohort", "kafka"])
def broker(request: pytest.FixtureRequest) -> Server:
    """For Kohort's client: a Kohort server, and the newest Apache Kafka; one each for all tests of a worker."""
    server: Server = request.getfixturevalue(BROKERS[request.param])
    watch(request.node, server)
    return server


@pytest.fixture
def own_server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the test's own, to kill, or (`parametrize`, indirect) with settings of its own."""
    server = new_server(tmp_path / "server", getattr(request, "param", None))
    watch(request.node, server)
    yield server
    if server.process is not None:
        server.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKohort]:
    """A server with listeners of all protocols; modules that want it otherwise have their own."""
    server = SecureKohort(tmp_path_factory.mktemp("secured"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def admin(session_server: Server) -> AdminClient:
    return AdminClient({"bootstrap.servers": session_server.bootstrap})


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Names for topics, groups and transactional ids that no other test uses."""
    stem = re.sub(r"[^a-zA-Z0-9]+", "-", f"{request.path.stem}-{request.node.name}").strip("-")
    counter = itertools.count(1)
    return lambda: f"{stem}-{next(counter)}"


@pytest.fixture
def new_topic(admin: AdminClient, new_name: Callable[[], str]) -> Callable[..., str]:
    """Creates a topic of a name of its own: `new_topic(partitions=1, **{"max.message.bytes": …})`."""

    def create(partitions: int = 1, **configs: str) -> str:
        return create_topic(admin, new_name(), partitions, configs)

    return create


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    return request.param


@pytest.fixture(params=LIBRARIES, ids=lambda client: client.name)
def library(request: pytest.FixtureRequest) -> Client:
    """A client with transactions: kcat alone isn't one."""
    return request.param


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    """Apache Kafka's command line tools."""
    MAVEN.require()
    tools = Tools()
    yield tools
    tools.close()


@pytest.fixture
def members() -> Iterator[Members]:
    """Group members in child processes, ended with the test."""
    members = Members()
    yield members
    members.end()


def watch(item: pytest.Item, server: Server) -> None:
    item.stash.setdefault(SHOWN, {})[server] = server.complained.stat().st_size


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for server, since in item.stash.get(SHOWN, {}).items():
            report.sections.append((f"stderr of {server.bootstrap}", server.stderr(since)[-20_000:]))
    return report


@pytest.fixture(scope="module")
def garage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garage]:
    yield from open_garage(tmp_path_factory.mktemp("streams"))


@pytest.fixture
def fleet(garage: Garage, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    watch(request.node, garage.server)
    with garage.fleet(tmp_path) as fleet:
        yield fleet
