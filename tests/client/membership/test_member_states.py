from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kohort.client.membership.member_states import TRANSITIONS, Action, EventType, State, shown
from kohort.client.membership.settings import MembershipSettings
from kohort.client.membership.state_machine import MemberStateMachine

GUIDE = Path(__file__).parents[3] / "docs" / "consumer.md"


def test_guide_shows_the_table() -> None:
    assert GUIDE.read_text().endswith(shown() + "\n"), "let `python -m kohort.client.membership` print it again"


def test_command_prints_the_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kohort.client.membership"], capture_output=True, text=True, check=True
    )
    assert done.stdout == shown() + "\n"


def test_every_event_and_action_is_used_and_every_state_can_be_left_and_reached() -> None:
    assert {event for _, event in TRANSITIONS} == set(EventType)
    assert {action for actions, _ in TRANSITIONS.values() for action in actions} == set(Action)
    reached, edge = {State.UNSUBSCRIBED}, [State.UNSUBSCRIBED]
    while edge:
        state = edge.pop()
        for (before, _), (_, after) in TRANSITIONS.items():
            if before is state and after not in reached:
                reached.add(after)
                edge.append(after)
    assert reached == set(State)


def test_leaving_is_possible_from_everywhere() -> None:
    """Straight away, or when what the consumer is at is done."""
    out = {State.UNSUBSCRIBED, State.PREPARE_LEAVING, State.LEAVING}
    assert all((state, EventType.LEAVE) in TRANSITIONS for state in set(State) - out)


def test_the_machine_knows_every_action() -> None:
    machine = MemberStateMachine(MembershipSettings(group_id="g"), None)  # type: ignore[arg-type]
    assert set(machine._actions) == set(Action)
