"""Each test falls to one share, with the others of its file."""

from __future__ import annotations

import argparse

import pytest

from tests.shares import Share, share

pytest_plugins = "pytester"


def test_each_file_falls_to_one_share(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = long")
    test = "import pytest\n@pytest.mark.long\ndef test_a(): pass\ndef test_b(): pass"
    pytester.makepyfile(**{f"test_{number}": test for number in range(1, 5)}, test_0="def test_short(): pass")
    found = []
    for number in (1, 2):
        run = pytester.runpytest_inprocess("-p", "tests.shares", "-v", "-m", "long", "--share", f"{number}/2")
        found.append(sorted(line.split("::")[0] for line in run.outlines if "PASSED" in line))
    assert found == [["test_1.py", "test_3.py"], ["test_2.py", "test_4.py"]]


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="1/3"):
        share(text)


def test_shares_are_all_of_it() -> None:
    assert [Share(number, 3).of(range(8)) for number in (1, 2, 3)] == [[0, 3, 6], [1, 4, 7], [2, 5]]
