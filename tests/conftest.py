"""Hypothesis draws the same examples in every run, and takes the time it needs: the first example compiles.

It would draw others with each module that is loaded, as it takes constants from them: a test could fail among some
tests, and pass among others. And it would look for a smaller example as long as a test may take: the time limit would
strike first, and nobody would learn what has failed.
"""

import gc
from collections.abc import Generator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine, providers

settings.register_profile("kohort", deadline=None, derandomize=True)
settings.load_profile("kohort")
providers._get_local_constants = lambda: providers._local_constants  # which are none
engine.MAX_SHRINKING_SECONDS = 60

pytest_plugins = ["tests.time_limits", "tests.shares"]

LONGEST = frozenset({"test_kafka_protocol_tests.py", "test_time_limits.py", "test_wheel.py"})
"""Files with tests of half a minute and more each, by themselves."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Has the garbage collector leave alone what is imported and collected: it stays, and looking at it takes time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests come first: at the end nothing would be left for other workers meanwhile."""
    items.sort(key=lambda item: item.path.name not in LONGEST)
