"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[2]


@pytest.fixture
def inner_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Runs of pytest with this plugin alone, whether or not it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p kohort.testing.plugin -p no:cacheprovider --strict-markers -W error")
    return pytester


def test_installing_kohort_installs_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert project["entry-points"]["pytest11"] == {"kohort": "kohort.testing.plugin"}


def test_tests_of_a_session_share_a_broker(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import socket

        seen = []

        def test_one(kohort_broker):
            seen.append(kohort_broker.bootstrap_servers)

        def test_other(kohort_broker):
            assert seen == [kohort_broker.bootstrap_servers]
            host, port = seen[0].split(":")
            socket.create_connection((host, int(port))).close()
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_test_may_have_a_broker_of_its_own(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        seen = []

        def test_one(kohort_fresh_broker, kohort_broker):
            seen.append(kohort_fresh_broker.server)
            assert kohort_fresh_broker.bootstrap_servers != kohort_broker.bootstrap_servers

        def test_other(kohort_fresh_broker):
            assert kohort_fresh_broker.server not in seen
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_test_may_kill_its_broker(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        def test_crash(kohort_broker_process):
            address = kohort_broker_process.bootstrap_servers
            kohort_broker_process.kill()
            kohort_broker_process.start()
            assert kohort_broker_process.bootstrap_servers == address
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_test_may_have_a_secured_broker(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import pytest
        from confluent_kafka.admin import AdminClient

        @pytest.mark.kohort({"node.id": 7})
        def test_logs_in(kohort_secure_broker):
            alice = kohort_secure_broker.security.add_user("alice")
            assert list(AdminClient(alice.librdkafka).list_topics(timeout=30).brokers) == [7]
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=1)


def test_settings_come_from_the_configuration_and_from_markers(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makeini("[pytest]\nkohort_settings =\n    num.partitions=3\n    fetch.max.bytes=5000\n")
    inner_pytest.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.kohort({"fetch.max.bytes": 6000, "node.id": 5})

        def settings(broker, *keys):
            return [broker.server.broker.config.int(key) for key in keys]

        def test_all(kohort_broker):
            assert settings(kohort_broker, "num.partitions", "fetch.max.bytes", "node.id") == [3, 5000, 1]

        @pytest.mark.kohort({"node.id": 6})
        def test_own(kohort_fresh_broker):
            assert settings(kohort_fresh_broker, "num.partitions", "fetch.max.bytes", "node.id") == [3, 6000, 6]
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_setting_without_a_value_is_a_usage_error(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makeini("[pytest]\nkohort_settings = num.partitions\n")
    inner_pytest.makepyfile("def test_all(kohort_broker): pass")

    result = inner_pytest.runpytest_subprocess()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*kohort_settings: 'num.partitions' isn't key=value*"])


def test_a_run_without_brokers_loads_no_broker() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import kohort.testing.plugin; "
        "new = {name for name in set(sys.modules) - before if not name.startswith(('kohort.testing', 'kohort'))}; "
        "assert not new, new; assert 'kohort.broker' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
