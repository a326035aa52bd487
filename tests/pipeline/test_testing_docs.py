"""The tests of docs/testing.md run as they are written, with the fixtures that installing Kohort brings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools import JAVA

pytest_plugins = "pytester"

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_tests_of_the_guide_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    JAVA.require()
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p kohort.testing.plugin -p no:cacheprovider --strict-markers -W error")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    pytester.makepyfile(test_guide="\n\n".join(blocks))
    tests = sum(block.count("def test_") for block in blocks)
    assert tests >= 4

    pytester.runpytest_subprocess().assert_outcomes(passed=tests)
