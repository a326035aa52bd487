"""Brokers within this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from kohort.broker.config import ConfigError
from kohort.testing import Broker


def topics(bootstrap_servers: str) -> set[str]:
    """The names of all topics, as a client sees them."""
    return set(AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(timeout=30).topics)


def create_topic(bootstrap_servers: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})  # it takes its futures with it when it goes
    admin.create_topics([NewTopic(name, 1)])[name].result(30)


def test_a_client_connects() -> None:
    with Broker() as broker:
        create_topic(broker.bootstrap_servers, "orders")

        assert "orders" in topics(broker.bootstrap_servers)


def test_a_client_connects_within_the_callers_event_loop() -> None:
    async def main() -> set[str]:
        async with Broker() as broker:
            return await asyncio.to_thread(topics, broker.bootstrap_servers)

    assert asyncio.run(main()) == set()


def test_several_run_side_by_side_and_know_nothing_of_each_other() -> None:
    with Broker() as one, Broker() as other:
        create_topic(one.bootstrap_servers, "orders")

        assert "orders" not in topics(other.bootstrap_servers)


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = set(threading.enumerate())

    with Broker() as broker:
        assert list(tmp_path.iterdir())
        host, port = broker.bootstrap_servers.split(":")

    assert set(threading.enumerate()) <= threads
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 30)


def test_data_of_its_own_directory_stays(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        create_topic(broker.bootstrap_servers, "orders")

    with Broker(data_dir=tmp_path) as broker:
        assert "orders" in topics(broker.bootstrap_servers)


def test_one_object_can_run_again() -> None:
    broker = Broker()
    for _ in range(2):
        with broker:
            assert topics(broker.bootstrap_servers) == set()


def test_settings_are_kafkas() -> None:
    with Broker({"num.partitions": 7, "auto.create.topics.enable": True}) as broker:
        assert broker.server.broker.config.int("num.partitions") == 7


def test_the_environment_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOHORT_NUM_PARTITIONS", "7")

    with Broker() as broker:
        assert broker.server.broker.config.int("num.partitions") == 1


def test_settings_that_can_not_be_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"num\.partition \(the test's settings\): .* did you mean num\.partitions\?"):
        Broker({"num.partition": 7})


def test_a_broker_that_does_not_run_has_no_address() -> None:
    with pytest.raises(RuntimeError, match="enter it with"):
        _ = Broker().bootstrap_servers


def test_a_broker_that_can_not_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = set(threading.enumerate())

    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = Broker(port=taken.getsockname()[1])
        with pytest.raises(OSError, match="address already in use"), broker:
            pass

    assert set(threading.enumerate()) <= threads
    assert list(tmp_path.iterdir()) == []
