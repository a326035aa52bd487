"""Finds the state of a program that nothing bounds.

State by key alone isn't such: an aggregate without windows, the last rows of groups, a table. It grows with the keys,
as a database's does, and that is what it is for.
"""

from __future__ import annotations

from collections.abc import Iterator

from kohort.spark.program.function_definitions import FunctionDef
from kohort.spark.program.notes import Unbounded
from kohort.spark.program.operations import Dedupe, Top
from kohort.spark.program.processor_specs import Process, StateKind
from kohort.spark.program.streams import AggregateDef, ProcessDef
from kohort.spark.program.windows import SessionSpec, WindowSpec


def unbounded_windows(definition: AggregateDef, event_time: str | None) -> Iterator[Unbounded]:
    """What an aggregate keeps of windows that nothing removes. `event_time`: the stream's, if it is a column."""
    window = definition.grouped._window
    if window is None or window.retention_ms is not None:
        return
    if isinstance(window, SessionSpec):
        keeps, called = "each session for ever", "session"
    elif window.since_ms is None:
        keeps, called = "each window for ever", "window"
    else:  # one window, without an end
        return
    grace = "" if window.grace_ms is not None else "grace=…, "
    why_not = _never_over(window, event_time)
    instead = f'{called}(…, retention="forever")' if why_not else f'{called}(…, {grace}retention="7 days")'
    yield Unbounded(definition.name, keeps, instead, definition.at, window.forever, why_not)


def unbounded_state(definition: ProcessDef, step: Process) -> Iterator[Unbounded]:
    """What a step keeps for ever, beside what it keeps by group."""
    at = definition.at
    match definition.operation:
        case Dedupe(within_ms=None, forever=meant):
            yield Unbounded(step.name, "each key for ever", 'dedupe(…, within="10 minutes")', at, meant)
        case Top(window=WindowSpec(grace_ms=None, since_ms=None, forever=meant) as window):
            why_not = _never_over(window, step.event_time)
            instead = 'window(…, retention="forever")' if why_not else 'window(…, grace="10 minutes")'
            yield Unbounded(step.name, "the ranks of each window for ever", instead, at, meant, why_not)
        case FunctionDef(states=states):
            stores = {state.name: state.store for state in step.states}
            for name, state in states.items():
                if state.kind is StateKind.LIST and not state.ttl_ms:
                    keeps = "each row that the function appends, unless that clears the list"
                    yield Unbounded(stores[name], keeps, 'list_state(…, ttl="1 day")', at, state.forever)


def _never_over(window: WindowSpec | SessionSpec, event_time: str | None) -> str:
    """Why windows can have neither a grace nor a retention, as those over the clock; "" if they can."""
    if window.grace_ms is not None or window.column == event_time:
        return ""
    return f"a grace and a retention go by the stream's event time, and {window.column!r} isn't that"
