"""A share of something long: `pytest --share 1/2` runs every second file of tests, from the first on.

Files, and not tests: what a file's tests share, as a session of Spark's, is made once.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import pytest

Each = TypeVar("Each")


class Share(NamedTuple):
    """The `number`-th of `shares` shares, from 1 on."""

    number: int
    shares: int

    def of(self, all_of_them: Sequence[Each]) -> list[Each]:
        """What falls to it of these: every `shares`-th."""
        return list(all_of_them[self.number - 1 :: self.shares])


WHOLE: Final = Share(1, 1)


def share(text: str) -> Share:
    """What a command line says: 1/2.

    Raises:
        argparse.ArgumentTypeError: it isn't one.
    """
    if (found := re.fullmatch(r"(\d+)/(\d+)", text)) and 1 <= int(found[1]) <= int(found[2]):
        return Share(int(found[1]), int(found[2]))
    raise argparse.ArgumentTypeError(f"{text} is no share: the first of three is 1/3, the last 3/3")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--share", type=share, default=WHOLE, metavar="K/N", help="of the files of tests every N-th, from the K-th on"
    )


@pytest.hookimpl(trylast=True)  # of those that other options have left
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    taken = set(config.getoption("share").of(sorted({item.path for item in items})))
    others = [item for item in items if item.path not in taken]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item.path in taken]
