"""Brokers as child processes."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kohort.testing import BrokerProcess

from .test_broker import create_topic, topics


def test_it_survives_being_killed_with_its_port_and_its_data() -> None:
    with BrokerProcess() as broker:
        address = broker.bootstrap_servers
        create_topic(address, "orders")

        broker.kill()
        broker.start()

        assert broker.bootstrap_servers == address
        assert "orders" in topics(address)


def test_it_restarts_in_good_order() -> None:
    with BrokerProcess() as broker:
        before = broker.pid

        broker.restart()

        assert broker.pid != before
        assert broker.stop() == 0


def test_several_run_side_by_side() -> None:
    with BrokerProcess() as one, BrokerProcess() as other:
        create_topic(one.bootstrap_servers, "orders")

        assert "orders" not in topics(other.bootstrap_servers)


def test_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with BrokerProcess() as broker:
        pid = broker.pid

    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    """As pytest may be killed, without time to end what it has started."""
    program = (
        "from kohort.testing import BrokerProcess; broker = BrokerProcess().__enter__(); "
        "print(broker.pid, flush=True); import signal; signal.pause()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        broker = os.pidfd_open(int(parent.stdout.readline()))

        parent.send_signal(number)

    try:
        assert select.select([broker], [], [], 30)[0], "the broker goes on"
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(broker, signal.SIGKILL)
        os.close(broker)
    assert list(tmp_path.glob("kohort-*/data/.kafka_cleanshutdown")), "it didn't stop cleanly"


def test_data_of_its_own_directory_stays(tmp_path: Path) -> None:
    with BrokerProcess(data_dir=tmp_path):
        pass

    assert (tmp_path / "meta.properties").exists()


def test_settings_and_options_are_kohort_serves() -> None:
    settings = {"broker.rack": "r1", "delete.topic.enable": False, "log.cleanup.policy": ["compact", "delete"]}

    with BrokerProcess(settings, options=("--log-format=json",)) as broker:
        assert broker.log().startswith("{")


def test_a_failed_start_shows_the_log() -> None:
    with pytest.raises(RuntimeError, match=r"exit code 2; its log ends with\n(.|\n)*did you mean num\.partitions\?"):
        BrokerProcess({"num.partition": 7}).__enter__()


def test_the_environment_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOHORT_NO_SUCH_KEY", "7")

    with BrokerProcess() as broker:
        assert broker.pid


def test_a_broker_that_does_not_run_can_not_be_killed() -> None:
    with BrokerProcess() as broker:
        broker.kill()

        with pytest.raises(RuntimeError, match="doesn't run"):
            broker.kill()


def test_a_broker_that_runs_can_not_be_started() -> None:
    with BrokerProcess() as broker, pytest.raises(RuntimeError, match="runs already"):
        broker.start()


def test_a_program_with_many_open_files_can_start_one() -> None:
    """Such as one that has had an embedded broker with a thousand logs."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    try:
        with contextlib.ExitStack() as files:
            for _ in range(1100):
                files.enter_context(Path("/dev/null").open("rb"))
            with BrokerProcess():
                pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
