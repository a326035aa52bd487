"""What comes of a run in the foreground."""

from __future__ import annotations

import asyncio

import pytest

from kohort.spark.errors import ProgramError
from kohort.spark.runtime.foreground import in_foreground
from kohort.spark.runtime.shutdown import Shutdown


async def wrong() -> None:
    raise ProgramError("there is no such topic")


def test_what_is_raised_has_no_error_of_asyncio_before_it() -> None:
    """A traceback would begin with that, and end with what matters."""
    with pytest.raises(ProgramError, match="no such topic") as caught:
        in_foreground(wrong, Shutdown())
    assert caught.value.__context__ is None


def test_in_a_notebook_it_is_the_same() -> None:
    async def cell() -> None:
        with pytest.raises(ProgramError, match="no such topic") as caught:
            in_foreground(wrong, Shutdown())
        assert caught.value.__context__ is None

    asyncio.run(cell())
