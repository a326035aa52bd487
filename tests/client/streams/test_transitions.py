"""The table of transitions, by itself."""

from __future__ import annotations

from pathlib import Path

from kohort.client.streams.transitions import ENTERING, HEARTBEATING, TRANSITIONS, Input, State, table

GUIDE = Path(__file__).parents[3] / "docs" / "streams-member.md"


def reachable(start: State) -> set[State]:
    found, new = {start}, {start}
    while new := {after for state in new for after in TRANSITIONS[state].values()} - found:
        found |= new
    return found


def test_every_state_is_in_both_tables_and_can_be_reached() -> None:
    assert TRANSITIONS.keys() == ENTERING.keys() == set(State) == reachable(State.UNJOINED)


def test_every_state_leads_to_an_end() -> None:
    for state in State:
        assert reachable(state) & {State.LEFT, State.FAILED}, state


def test_no_state_is_left_for_itself() -> None:
    assert all(after is not state for state, ways in TRANSITIONS.items() for after in ways.values())


def test_one_that_heartbeats_can_be_fenced_refused_and_closed() -> None:
    for state in HEARTBEATING:
        ends = Input.GONE if state is State.DEPARTING else Input.QUIT
        assert {Input.FENCED, Input.REFUSED, ends} <= TRANSITIONS[state].keys(), state


def test_the_guide_shows_the_table() -> None:
    assert table() in GUIDE.read_text()
