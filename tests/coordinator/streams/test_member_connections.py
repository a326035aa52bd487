"""When a member with a broken connection is dead, by tables in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.coordinator.streams.member_connections import MemberConnections
from kohort.coordinator.timing_wheel import TimingWheel

TIMEOUT = 1_000


class World:
    """Connections, and the time in ms, from 0 on."""

    def __init__(self) -> None:
        self.wheel = TimingWheel(0)
        self.dead: list[tuple[int, str]] = []
        self.connections = MemberConnections(
            self.wheel, lambda group, member, timeout: self.dead.append((self.wheel.now, member))
        )

    def at(self, now: int, what: str) -> None:
        """Does what a line says: `heard m a`, `held m a`, `back m`, `broken a`, `closed a`, `gone m`, `stopping`."""
        for each in range(self.wheel.now + 1, now + 1):
            self.wheel.advance(each)
        match what.split():
            case ["heard", member, connection]:
                self.connections.heard("app", member, connection, TIMEOUT)
            case ["held", member, connection]:
                self.connections.heard("app", member, connection, TIMEOUT, held=True)
            case ["back", member]:
                self.connections.came_back("app", member)
            case ["broken", connection]:
                self.connections.disconnected(connection, now)
            case ["closed", connection]:
                self.connections.closed(connection)
            case ["gone", member]:
                self.connections.forget("app", member)
            case ["stopping"]:
                self.connections.clear()
            case _:
                assert not what, what


@pytest.mark.parametrize(
    ("story", "dead"),
    [
        ({10: "heard m a", 20: "broken a"}, [(1_020, "m")]),
        ({10: "heard m a", 20: "broken a", 1_019: "heard m b"}, []),
        ({10: "heard m a", 20: "broken a", 900: "heard m b", 950: "broken b"}, [(1_950, "m")]),
        ({10: "heard m a", 15: "heard m b", 20: "broken a"}, []),
        ({10: "heard m a", 15: "heard m b", 20: "broken b"}, [(1_020, "m")]),
        ({10: "heard m a", 15: "held m b", 20: "broken a"}, []),
        ({10: "heard m a", 15: "held m b", 20: "broken b"}, []),
        ({10: "heard m a", 15: "held m b", 20: "broken b", 30: "broken a"}, [(1_030, "m")]),
        ({10: "heard m a", 15: "held m b", 20: "broken a", 30: "broken b"}, [(1_030, "m")]),
        ({10: "heard m a", 15: "held m b", 20: "broken a", 21: "heard m c", 30: "broken b"}, []),
        ({10: "heard m a", 15: "held m b", 16: "held m c", 20: "broken a", 30: "broken b"}, []),
        ({10: "heard m a", 15: "held m a", 20: "broken a"}, [(1_020, "m")]),
        ({10: "heard m a", 15: "held m a", 16: "held m b", 20: "broken b", 30: "broken a"}, [(1_030, "m")]),
        ({10: "heard m a", 15: "held m b", 20: "closed b", 30: "broken a"}, [(1_030, "m")]),
        ({10: "heard m a", 15: "held m b", 20: "closed a", 30: "broken b"}, [(1_030, "m")]),
        ({10: "heard m a", 15: "held m b", 20: "closed a", 30: "closed b"}, []),
        ({10: "heard m a", 20: "broken a", 900: "back m"}, []),
        ({10: "heard m a", 20: "broken a", 900: "back m", 950: "heard m b", 960: "broken b"}, [(1_960, "m")]),
        ({10: "heard m a", 11: "heard n a", 20: "broken a", 30: "heard n b"}, [(1_020, "m")]),
        ({10: "heard m a", 20: "broken a", 30: "gone m"}, []),
        ({10: "heard m a", 20: "gone m", 30: "broken a"}, []),
        ({10: "heard m a", 20: "broken a", 500: "broken a"}, [(1_020, "m")]),
        ({10: "heard m a", 20: "broken a", 30: "stopping"}, []),
        ({10: "heard m a", 20: "stopping", 30: "broken a"}, []),
    ],
)
def test_a_member_is_dead_when_none_of_its_connections_is_open_for_its_timeout(
    story: dict[int, str], dead: list[tuple[int, str]]
) -> None:
    world = World()
    for now, what in story.items():
        world.at(now, what)
    world.at(5_000, "")
    assert world.dead == dead


@pytest.mark.parametrize(("late", "dead_at"), [(5, 1_025), (6, 1_226), (3_000, 4_220)])
def test_a_server_that_was_held_up_itself_reads_what_has_arrived_first(late: int, dead_at: int) -> None:
    world = World()
    world.at(10, "heard m a")
    world.at(20, "broken a")
    world.wheel.advance(1_020 + late)
    world.at(5_000, "")
    assert world.dead == [(dead_at, "m")]


def test_who_is_heard_after_the_server_was_held_up_is_alive() -> None:
    world = World()
    world.at(10, "heard m a")
    world.at(20, "broken a")
    world.wheel.advance(4_000)
    world.at(4_100, "heard m b")
    world.at(9_000, "")
    assert not world.dead


def test_a_server_that_is_always_late_waits_once() -> None:
    world = World()
    world.at(10, "heard m a")
    world.at(20, "broken a")
    world.wheel.advance(1_100)
    world.wheel.advance(1_400)
    assert world.dead == [(1_400, "m")]


EVENT = st.tuples(
    st.integers(0, 1_500),
    st.sampled_from(["heard", "held", "back", "broken", "gone"]),
    st.sampled_from("mn"),
    st.sampled_from("abc"),
)


@given(st.lists(EVENT, max_size=30))
def test_nothing_is_kept_of_those_who_are_dead_or_gone(events: list[tuple[int, str, str, str]]) -> None:
    world, now = World(), 0
    for pause, what, member, connection in events:
        now += pause
        line = {"back": f"back {member}", "gone": f"gone {member}", "broken": f"broken {connection}"}
        world.at(now, line.get(what, f"{what} {member} {connection}"))
        if what == "back":  # its heartbeat is answered
            world.at(now, f"heard {member} {connection}")
    for connection in "abc":
        world.at(now, f"broken {connection}")
    world.at(now + TIMEOUT + 1, "")
    assert len(world.connections) == 0
    assert not world.connections._members
    assert world.wheel.next_deadline() is None
