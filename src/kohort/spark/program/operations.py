"""What processors do, as data: see `kohort.spark.jobs.processors` for how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kohort.spark.program.processor_specs import Operation

TIMERS: Final = "timers"
"""What the state of a user's function is called that has its timers."""


@dataclass(frozen=True)
class UserFunction(Operation):
    """A function of the user's over the rows of an epoch, and the state of their groups."""

    function: Callable[[Any, Any], Any]

    kind = "KSTREAM-PROCESSOR"
