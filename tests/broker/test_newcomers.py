from __future__ import annotations

from kohort.broker.newcomers import PATIENCE_SECONDS, SECONDS, Newcomers


class World:
    """Newcomers with a clock, and who was closed."""

    def __init__(self, most: int) -> None:
        self.now = 0.0
        self.closed: list[str] = []
        self.newcomers = Newcomers(most, lambda: self.now)

    def enter(self, host: str, name: str) -> object:
        return self.newcomers.enter(host, lambda reason: self.closed.append(name))


def test_the_oldest_of_the_address_with_most_goes() -> None:
    world = World(5)
    world.enter("good", "good 1")
    for number in range(4):
        world.enter("bad", f"bad {number}")
    world.now += PATIENCE_SECONDS
    world.enter("good", "good 2")
    world.enter("good", "good 3")
    assert world.closed == ["bad 0", "bad 1"]
    assert len(world.newcomers) == 5


def test_nobody_goes_at_once() -> None:
    world = World(2)
    for number in range(10):
        world.enter("a", str(number))
    assert world.closed == []
    world.newcomers.make_room()
    assert world.closed == []
    world.now += PATIENCE_SECONDS
    world.newcomers.make_room()
    assert world.closed == ["0"]


def test_who_takes_too_long_goes() -> None:
    world = World(10)
    first = world.newcomers.enter("a", lambda reason: world.closed.append("first"))
    world.now = 1.0
    world.enter("b", "second")
    world.newcomers.leave(first)
    world.newcomers.leave(first)
    world.now = SECONDS
    world.newcomers.close_late()
    assert world.closed == []
    world.now += 1.0
    world.newcomers.close_late()
    assert world.closed == ["second"]
    assert len(world.newcomers) == 0
    world.newcomers.make_room()
