"""Tests that hang end, and tell where they stood."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[1]

AWAITING = """
    import asyncio
    from contextlib import asynccontextmanager

    import pytest
    import uvloop

    @asynccontextmanager
    async def opened():
        await asyncio.Event().wait()  # never opens
        yield

    async def use():
        async with opened():
            pass

    @pytest.mark.timeout(1)
    @pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
    def test_awaits(loop):
        async def wait():
            await asyncio.create_task(use(), name="user")

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(wait())
"""

JOINING = """
    import asyncio
    import threading

    import pytest

    async def answer():
        await asyncio.get_running_loop().create_future()

    def serve():
        asyncio.run(answer())

    @pytest.mark.timeout(1)
    def test_joins():
        server = threading.Thread(target=serve, name="server", daemon=True)
        server.start()
        server.join()
"""

WORKING = """
    def test_works():
        pass
"""


@pytest.fixture
def inner_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Runs of pytest with time limits, which are short."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugins = "-p pytest_timeout -p xdist.plugin -p tests.time_limits -p no:cacheprovider"
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{plugins} -W error -o timeout=60 -o timeout_grace=5")
    return pytester


@pytest.mark.parametrize("workers", ["0", "1"])
def test_what_hangs_fails_with_the_stacks_of_threads_and_tasks_and_the_others_run(
    inner_pytest: pytest.Pytester, workers: str
) -> None:
    inner_pytest.makepyfile(test_a=AWAITING, test_b=JOINING, test_c=WORKING)
    # A grace that isn't over before all stacks are told, however busy the machine is.
    result = inner_pytest.runpytest_subprocess("-n", workers, "-o", "timeout_grace=60", timeout=240)
    result.assert_outcomes(failed=3, passed=1)
    for loop in ("asyncio", "uvloop"):
        result.stdout.fnmatch_lines(
            [
                f"*test_a.py::test_awaits?{loop}?: not done within 1 s*",
                "-- thread 'MainThread'",
                "*test_a.py*in test_awaits",
                "-- task 'user'",
                "*in use",
                "*in opened",
                "    await asyncio.Event().wait()  # never opens",
                "*in wait",
                "  awaits <Future pending*",
            ]
        )
    result.stdout.fnmatch_lines(
        [
            "*test_b.py::test_joins: not done within 1 s*",
            "-- thread 'server'",
            "*in serve",
            "-- task *",
            "*in answer",
            "  awaits <Future pending*",
        ]
    )


DEAF = """
    import ctypes
    import threading

    import pytest

    @pytest.mark.timeout(1)
    def test_cleans_up_for_ever():
        try:
            threading.Event().wait()
        finally:
            while True:
                try:
                    threading.Event().wait()
                except BaseException:
                    pass

    @pytest.fixture
    def sticky():
        yield
        threading.Event().wait()

    @pytest.mark.timeout(1)
    def test_fails_and_then_is_not_torn_down(sticky):
        assert False

    @pytest.mark.timeout(1)
    def test_locks_twice():
        lock = ctypes.create_string_buffer(256)
        ctypes.CDLL(None).pthread_mutex_lock(lock)
        ctypes.CDLL(None).pthread_mutex_lock(lock)

    @pytest.mark.timeout(1)
    def test_keeps_the_interpreter():
        lock = ctypes.create_string_buffer(256)
        ctypes.PyDLL(None).pthread_mutex_lock(lock)
        ctypes.PyDLL(None).pthread_mutex_lock(lock)  # as the one above, but no other thread runs meanwhile
"""


def test_what_no_signal_ends_ends_with_its_process_and_is_named(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(test_a=DEAF, test_b=WORKING)
    result = inner_pytest.runpytest_subprocess("-n", "2", timeout=240)
    result.assert_outcomes(failed=5, passed=1)
    hung = "cleans_up_for_ever", "fails_and_then_is_not_torn_down", "locks_twice", "keeps_the_interpreter"
    for each in hung:
        result.stdout.fnmatch_lines(f"worker * crashed while running 'test_a.py::test_{each}'")
    for each in hung[:-1]:
        result.stderr.fnmatch_lines(f"test_a.py::test_{each}: not done within 1 s, nor 5 s later: its process ends")
    result.stderr.fnmatch_lines(["++ When its time was over ++", "-- thread 'MainThread'", "++ Now ++"])
    result.stderr.fnmatch_lines(["Timeout (*)!", "*in test_keeps_the_interpreter"])


def test_what_hangs_without_other_processes_ends_the_run(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(test_a=DEAF)
    result = inner_pytest.runpytest_subprocess("-k", "locks_twice", timeout=240)
    assert result.ret == 1
    result.stderr.fnmatch_lines("test_a.py::test_locks_twice: not done within 1 s, nor 5 s later: its process ends")


def test_a_thread_that_is_left_does_not_keep_the_run_from_ending(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makepyfile(
        """
        import threading

        def test_leaves():
            threading.Thread(target=threading.Event().wait).start()
        """
    )
    result = inner_pytest.runpytest_subprocess(timeout=240)
    assert result.ret == 1
    result.assert_outcomes(passed=1)
    result.stderr.fnmatch_lines(["Timeout (*)!", "*in _shutdown*"])


def test_tests_that_take_long_have_longer_unless_they_say_what_they_have(inner_pytest: pytest.Pytester) -> None:
    inner_pytest.makeini("[pytest]\nmarkers = long: takes long")
    inner_pytest.makepyfile(
        """
        import pytest

        @pytest.mark.long
        def test_long(request):
            assert request.node.get_closest_marker("timeout").args == (1_800,)

        @pytest.mark.long
        @pytest.mark.timeout(5)
        def test_says(request):
            assert request.node.get_closest_marker("timeout").args == (5,)
        """
    )
    inner_pytest.runpytest_subprocess(timeout=240).assert_outcomes(passed=2)
