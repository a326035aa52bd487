"""Functions of the user's that keep state, as they are written in programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from kohort.spark.errors import ProgramError
from kohort.spark.program.operations import CLOCK_TIMERS, TIMERS
from kohort.spark.program.settings import check_name
from kohort.spark.program.sources import Schema
from kohort.spark.program.state_definitions import StateDef

TimersBy = Literal["event", "processing"]
"""By which time timers go: the stream time of the task, or the clock."""
Timers = bool | TimersBy | Sequence[TimersBy]


@dataclass(eq=False)
class FunctionDef:
    """A function of the user's over the rows of an epoch, with what it keeps and gives.

    Attributes:
        output: the columns of what it gives; of several "", whose columns are in `outputs` by name.
        timers: by which times it sets timers.
    """

    what: ClassVar[str] = "process"

    function: Callable[[Any, Any], Any]
    output: Schema
    outputs: dict[str, Schema]
    states: dict[str, StateDef]
    timers: frozenset[TimersBy]


def function_def(
    name: str,
    function: Callable[[Any, Any], Any],
    output: Schema | None,
    outputs: Mapping[str, Schema] | None,
    states: Mapping[str, StateDef] | None,
    *,
    timers: Timers,
) -> FunctionDef:
    """A function of the user's, checked as far as that goes without Spark. Arguments as of `GroupedStream.process`.

    Raises:
        ProgramError: arguments that can't be.
    """
    where = f"process({name!r})"
    if not callable(function):
        raise ProgramError(f"{where} takes a function over (rows, state), not {function!r}")
    if (output is None) == (outputs is None):
        raise ProgramError(
            f'{where} needs the columns that the function gives: output="sensor STRING, level INT", or of several '
            f'streams outputs={{"changes": "sensor STRING", "alarms": "sensor STRING, at TIMESTAMP"}}'
        )
    if outputs is not None and not outputs:
        raise ProgramError(f"{where}: outputs={outputs!r} has no output: say the columns of each, by its name")
    kept = dict(states or {})
    for each, definition in kept.items():
        check_name(f"{where}: state", each)
        if not isinstance(definition, StateDef):
            raise ProgramError(
                f"{where}: the state {each!r} is {definition!r}: say value_state, list_state or map_state"
            )
    if taken := {TIMERS, CLOCK_TIMERS} & kept.keys():
        raise ProgramError(f"{where}: a state can't be called {min(taken)!r}: say timers=True for timers")
    return FunctionDef(function, output or "", dict(outputs or {}), kept, _timers(where, timers))


def _timers(where: str, given: object) -> frozenset[TimersBy]:
    if isinstance(given, bool):
        return frozenset(["event"]) if given else frozenset()
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, Sequence) or any(each not in ("event", "processing") for each in named):
        raise ProgramError(
            f'{where}: timers={given!r}: True or "event", "processing", or both: ("event", "processing")'
        )
    return frozenset(named)
