"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
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


def test_kohorts_own_modules_are_not_rewritten(inner_pytest: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:cacheprovider")
    # As installed by a wheel, of whose plugin pytest finds the package by its list of files.
    about = inner_pytest.mkdir("installed") / "kohort-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kohort\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[pytest11]\nkohort = kohort.testing.plugin\n")
    (about / "RECORD").write_text("kohort/__init__.py,,\nkohort/testing/plugin.py,,\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(about.parent), *sys.path]))
    inner_pytest.makepyfile(
        """
        import sys

        def loaders():
            found = {name: type(module.__spec__.loader).__name__ for name, module in sys.modules.items()
                     if name.startswith("kohort.")}
            return {name for name, loader in found.items() if "Rewriting" in loader}

        def test_one(kohort_broker):
            assert __spec__.loader.__class__.__name__ == "AssertionRewritingHook"
            assert loaders() <= {"kohort.testing", "kohort.testing.plugin", "kohort.testing.assertion_rewriting"}
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=1)


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
        import pytest

        seen = []

        @pytest.mark.filterwarnings("ignore:two brokers")
        def test_one(kohort_fresh_broker, kohort_broker):
            seen.append(kohort_fresh_broker.server)
            assert kohort_fresh_broker.bootstrap_servers != kohort_broker.bootstrap_servers

        def test_other(kohort_fresh_broker):
            assert kohort_fresh_broker.server not in seen
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=2)


def test_two_brokers_that_are_easily_mixed_up_are_told_of(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def orders(kohort_broker):
            pass

        def test_direct(kohort_broker, kohort_fresh_broker):
            pass

        def test_by_a_fixture(orders, kohort_broker_process):
            pass

        def test_secured(kohort_broker, kohort_secure_broker):
            pass

        @pytest.mark.filterwarnings("ignore:two brokers")
        def test_both_are_meant(kohort_broker, kohort_fresh_broker):
            pass
        """
    )

    result = inner_pytest.runpytest_subprocess("-W", "default", "--setup-plan")  # nothing has to run

    result.assert_outcomes(warnings=2)
    result.stdout.fnmatch_lines(
        [
            "*.py:7: PytestWarning: two brokers: the test takes kohort_broker and kohort_fresh_broker, *",
            "*.py:10: PytestWarning: two brokers: the test takes kohort_broker and kohort_broker_process, *",
        ]
    )


def test_a_broker_of_ones_own_that_is_not_filled_is_told_of(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import pytest
        from kohort.testing import Broker, Filling, KohortContainer

        @pytest.fixture(scope="module")
        def own_broker():
            with Broker() as broker:
                yield broker

        @pytest.fixture
        def kafka(request):
            with KohortContainer() as kafka:
                yield kafka

        def test_topic(kohort_topic, own_broker):
            kohort_topic(kohort_topic())

        def test_group(kafka, kohort_topic, kohort_group):
            kohort_group("none-such")

        def test_in_the_test(kohort_topic):
            with Broker():
                kohort_topic()

        @pytest.mark.filterwarnings("ignore:two brokers")
        def test_both_are_meant(kohort_topic, own_broker):
            kohort_topic()

        def test_of_other_tests(kohort_topic):
            kohort_topic()

        def test_filled(own_broker):
            Filling(own_broker, "own").topic()

        def test_one_of_kohorts(kohort_fresh_broker, kohort_topic):
            kohort_topic()
        """
    )

    result = inner_pytest.runpytest_subprocess("-W", "default")

    result.stdout.fnmatch_lines(
        [
            "*.py:14: PytestWarning: two brokers: kohort_topic fills kohort_broker, and * of the fixture own_broker *",
            "*.py:17: PytestWarning: two brokers: kohort_group fills kohort_broker, and * of the fixture kafka runs*",
            "*.py:20: PytestWarning: two brokers: kohort_topic fills kohort_broker, and another runs, too. *",
        ]
    )
    result.assert_outcomes(passed=5, failed=2, warnings=3)


def test_a_project_may_have_a_kohort_broker_of_its_own(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import pytest
        from kohort.testing import KohortContainer

        @pytest.fixture(scope="session")
        def kafka():
            with KohortContainer() as kafka:
                yield kafka

        @pytest.fixture(scope="session")
        def kohort_broker(kafka):
            return kafka

        def test_topic(kohort_topic):
            kohort_topic()
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=1)


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

        def settings(broker, *keys):
            return [broker.server.broker.config.int(key) for key in keys]

        def test_all(kohort_broker):
            assert settings(kohort_broker, "num.partitions", "fetch.max.bytes", "node.id") == [3, 5000, 1]

        @pytest.mark.kohort({"fetch.max.bytes": 6000, "node.id": 5})
        class TestOwn:
            @pytest.mark.kohort({"node.id": 6})
            def test_own(self, kohort_fresh_broker):
                assert settings(kohort_fresh_broker, "num.partitions", "fetch.max.bytes", "node.id") == [3, 6000, 6]

            @pytest.mark.filterwarnings("ignore:two brokers")
            def test_both(self, kohort_broker, kohort_fresh_broker):
                assert settings(kohort_broker, "node.id") + settings(kohort_fresh_broker, "node.id") == [1, 5]

            def test_none(self):
                pass
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=4)


def test_a_setting_without_a_value_is_told_in_a_sentence(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makeini("[pytest]\nkohort_settings = num.partitions\n")
    inner_pytest.makepyfile("def test_all(kohort_broker): pass")

    result = inner_pytest.runpytest_subprocess()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*kohort_settings: 'num.partitions' isn't key=value*"])


def test_settings_that_nobody_would_take_are_refused(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import pytest

        @pytest.mark.kohort({"num.partitions": 3})
        def test_shared(kohort_broker):
            pass

        @pytest.mark.kohort({"num.partitions": 3})
        def test_topic(kohort_topic):
            pass

        @pytest.mark.kohort({"num.partition": 3})
        def test_misspelled(kohort_fresh_broker):
            pass

        @pytest.mark.kohort("num.partitions=3")
        def test_text(kohort_fresh_broker):
            pass

        def test_time(kohort_time, kohort_broker):
            pass

        def test_time_of_a_process(kohort_time, kohort_broker_process):
            pass

        def test_time_of_none(kohort_time):
            pass

        def test_which(kohort_topic, kohort_fresh_broker, kohort_secure_broker):
            pass

        def test_file(kohort_topic):
            kohort_topic(__import__("pathlib").Path("nowhere.csv"))

        def test_ahead(kohort_topic, kohort_group):
            kohort_group(kohort_topic(), behind=-1)

        def test_taken(kohort_topic):
            kohort_topic(name="taken")
            kohort_topic(name="taken")

        def test_number(kohort_topic):
            kohort_topic(3)

        def test_header(kohort_topic):
            kohort_topic([b"tea", __import__("kohort.testing").testing.NewRecord(b"x", headers={"tries": 7})])
        """
    )

    result = inner_pytest.runpytest_subprocess()

    result.assert_outcomes(errors=8, failed=5)
    result.stdout.fnmatch_lines_random(
        [
            *2
            * ["@pytest.mark.kohort has settings for a broker of the test's own, and kohort_broker is all tests': *"],
            "the broker can't run: num.partition (the test's settings): * did you mean num.partitions?",
            '@pytest.mark.kohort takes a dict of settings: {"num.partitions": 3}',
            "kohort_time moves the clock of a test's own broker: take one of *, not kohort_broker",
            "kohort_time *: take one of *, not kohort_broker_process: the clock of another process can't be moved",
            "kohort_time moves *: take one of *, too; a kohort.testing.Broker of your own has Broker.advance",
            "the test has several brokers, kohort_fresh_broker and kohort_secure_broker: *",
            "E * kohort_topic: *No such file or directory: *nowhere.csv'",
            "E * kohort_group: a group can't be ahead of the end: behind=-1",
            "E * kohort_topic: TOPIC_ALREADY_EXISTS*; kohort_broker is all tests': leave name= out, *",
            '>       kohort_topic(name="taken")',
            "E * kohort_topic: records are a list or a Path, not 3",
            ">       kohort_topic(3)",
            "E * kohort_topic: record 1: the header 'tries' is 7; a name is text, a value bytes or None",
        ]
    )
    result.stdout.no_fnmatch_line("*.py:*: *Error")
    result.stdout.no_fnmatch_line("*plugin.py*")
    result.stdout.no_fnmatch_line("During handling of *")
    # Its summary repeats the error, whole, where pytest knows that it runs in CI.
    errors = [line for line in result.stdout.lines if line.startswith("E ")]
    assert sum("records are a list or a Path, not 3" in line for line in errors) == 1


def test_arguments_that_there_are_not_are_told_of_the_fixture(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        def test_topic(kohort_topic):
            kohort_topic(partition=3)

        def test_group(kohort_group):
            kohort_group("orders", lag=3)
        """
    )

    result = inner_pytest.runpytest_subprocess()

    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E * kohort_topic() got an unexpected keyword argument 'partition'*",
            "E * kohort_group() got an unexpected keyword argument 'lag'*",
        ]
    )


def test_a_test_has_topics_groups_and_time_of_its_broker(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makefile(".jsonl", orders='{"id": "a", "n": 1}\n{"id": "b", "n": 2}\n')
    inner_pytest.makepyfile(
        """
        from datetime import timedelta
        from pathlib import Path

        import pytest
        from confluent_kafka import Consumer, TopicPartition

        names = []

        def values(servers, topic, count):
            consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
            consumer.subscribe([topic])
            try:
                return [(message.key(), message.value()) for message in consumer.consume(count, 30)]
            finally:
                consumer.close()

        def test_list(kohort_broker, kohort_topic):
            names.append(kohort_topic([("a", b"tea"), {"n": 1}]))
            found = values(kohort_broker.bootstrap_servers, names[0], 2)
            assert found == [(b"a", b"tea"), (None, b'{"n":1}')]

        @pytest.mark.parametrize("kind", ["a/than b"])
        def test_file(kohort_fresh_broker, kohort_topic, kind):
            names.append(kohort_topic(Path("orders.jsonl"), key="id"))
            found = values(kohort_fresh_broker.bootstrap_servers, names[1], 2)
            assert found == [(b"a", b'{"id": "a", "n": 1}'), (b"b", b'{"id": "b", "n": 2}')]

        def test_group(kohort_broker_process, kohort_topic, kohort_group):
            topic = kohort_topic([b"1", b"2", b"3"])
            group = kohort_group(topic, behind=1)
            servers = kohort_broker_process.bootstrap_servers
            consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
            assert consumer.committed([TopicPartition(topic, 0)], timeout=30)[0].offset == 2
            consumer.close()

        def test_time(kohort_secure_broker, kohort_time, kohort_topic):
            before = kohort_time.now
            kohort_time.advance(timedelta(days=1))
            assert kohort_time.now - before >= timedelta(days=1)
            names.append(kohort_topic([b"tea"], name="orders"))

        def test_names():
            assert names == ["test_list-1-1", "test_file-a-than-b-1-1", "orders"]
        """
    )

    inner_pytest.runpytest_subprocess().assert_outcomes(passed=5)


def test_a_test_that_fails_shows_what_its_brokers_logged(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        from confluent_kafka import Producer

        def write(broker, topic):
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            producer.produce(topic, b"tea")  # which the broker creates, and says so
            assert producer.flush(30) == 0

        def test_earlier(kohort_broker, caplog):
            write(kohort_broker, "of-an-earlier-test")
            assert not caplog.records

        def test_shared(kohort_broker):
            write(kohort_broker, "of-this-test")
            assert False

        def test_process(kohort_broker_process):
            assert False

        def test_no_broker():
            assert False
        """
    )

    result = inner_pytest.runpytest_subprocess()

    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*_ test_shared _*", "*- Kohort's log call -*", "*of-this-test*",
            "*_ test_process _*", "*- Kohort's log call, the broker's process -*", "*event=listening*",
            "*_ test_no_broker _*",
        ]
    )  # fmt: skip
    result.stdout.no_fnmatch_line("*of-an-earlier-test*")
    assert "Kohort's log" not in result.stdout.str().partition("_ test_no_broker _")[2]


def test_a_test_that_fails_shows_what_other_brokers_logged(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import pytest
        from kohort.testing import Broker, Filling, KohortContainer

        @pytest.fixture(scope="module")
        def own_broker():
            with Broker() as broker:
                yield broker

        @pytest.fixture(scope="module")
        def kafka():
            with KohortContainer() as kafka:
                yield kafka

        def test_own(own_broker):
            Filling(own_broker, "own").topic()
            assert False

        def test_child(kafka):
            Filling(kafka, "child").topic()
            assert False

        def test_child_again(kafka):
            Filling(kafka, "again").topic()
            assert False

        """
    )

    result = inner_pytest.runpytest_subprocess()

    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*_ test_own _*", "*- Kohort's log call -*", "*event=listening*", "*own-1*",
            "*_ test_child _*", "*- Kohort's log call, the broker's process -*", "*event=listening*", "*child-1*",
            "*_ test_child_again _*", "*- Kohort's log call, the broker's process -*", "*again-1*",
        ]
    )  # fmt: skip
    assert "child-1" not in result.stdout.str().partition("_ test_child_again _")[2]


def test_each_worker_has_a_broker_of_its_own(inner_pytest: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    inner_pytest.makepyfile(
        """
        import pathlib

        def seen(kohort_broker, worker_id):
            (pathlib.Path(__file__).parent / worker_id).write_text(kohort_broker.bootstrap_servers)

        def test_one(kohort_broker, kohort_topic, worker_id):
            seen(kohort_broker, worker_id)
            kohort_topic(name="orders")

        def test_other(kohort_broker, kohort_topic, worker_id):
            seen(kohort_broker, worker_id)
            kohort_topic(name="orders")
        """
    )

    inner_pytest.runpytest_subprocess("-p", "xdist", "-n", "2").assert_outcomes(passed=2)

    assert len({(inner_pytest.path / worker).read_text() for worker in ("gw0", "gw1")}) == 2


def test_a_run_without_brokers_loads_no_broker() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import kohort.testing.plugin; "
        "new = {name for name in set(sys.modules) - before if not name.startswith(('kohort.testing', 'kohort'))}; "
        "assert not new, new; assert 'kohort.broker' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
