"""The target of `groups reset-offsets`, from its options."""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING

from kohort.cli.client.arguments import offsets_file, parse_duration, parse_number
from kohort.cli.client.times import parse_time
from kohort.cli.terminal import fail

if TYPE_CHECKING:
    from kohort.client.administration.resets import ResetTo


def reset_target(
    *,
    earliest: bool,
    latest: bool,
    current: bool,
    offset: str | None,
    shift: str | None,
    time: str | None,
    ago: str | None,
    file: str | None,
) -> ResetTo:
    """The target that the options give; the command ends if there is none, or more than one."""
    from kohort.client.administration.resets import ResetTo

    given = {
        "--to-earliest": earliest,
        "--to-latest": latest,
        "--to-current": current,
        "--to-offset": offset is not None,
        "--shift-by": shift is not None,
        "--to-datetime": time is not None,
        "--by-duration": ago is not None,
        "--from-file": file is not None,
    }
    named = [option for option, is_given in given.items() if is_given]
    if len(named) != 1:
        fail(f"where to? One of {', '.join(given)} is needed" + (f", not {' and '.join(named)}" if named else ""))
    if offset is not None:
        return ResetTo.offset(parse_number(offset, "--to-offset", "an offset", least=0))
    if shift is not None:
        return ResetTo.shift(parse_number(shift, "--shift-by", "a number of records"))
    now = int(clock.time() * 1000)
    if time is not None:
        try:
            return ResetTo.time(max(0, parse_time(time, now)))
        except ValueError as error:
            fail(f"--to-datetime {error}")
    if ago is not None:
        return ResetTo.time(max(0, now - parse_duration(ago, "--by-duration")))
    if file is not None:
        return ResetTo.to_offsets(offsets_file(file))
    return ResetTo.earliest() if earliest else ResetTo.latest() if latest else ResetTo.current()
