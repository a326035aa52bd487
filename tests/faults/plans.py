"""What can go wrong with a frame on its way, and plans that say with which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple

Direction = Literal["request", "response"]


class Frame(NamedTuple):
    """A request or response that passes; `size` counts its length prefix, too."""

    direction: Direction
    api: str  # such as "Fetch"
    size: int
    connection: int  # counted from 0


@dataclass(frozen=True)
class Cut:
    """So many bytes pass, then the connection ends."""

    at: int


@dataclass(frozen=True)
class Truncate:
    """A frame that is whole, but with so many bytes after the length prefix only."""

    to: int


@dataclass(frozen=True)
class Delay:
    """It passes later, as does what comes after it on the connection."""

    seconds: float


@dataclass(frozen=True)
class Duplicate:
    """It passes twice."""


@dataclass(frozen=True)
class Swallow:
    """It never arrives; the connection lives on."""


Fault = Cut | Truncate | Delay | Duplicate | Swallow
Plan = Callable[[Frame], Fault | None]


def nothing(_: Frame) -> None:
    """All passes as it is."""


class Script:
    """Faults for the next frames of an API in a direction, one after the other; then nothing more.

    Args:
        api, direction: which frames.
        faults: None lets one pass.
    """

    def __init__(self, api: str, direction: Direction, *faults: Fault | None) -> None:
        self.which = (direction, api)
        self.left = list(faults)

    def __call__(self, frame: Frame) -> Fault | None:
        return self.left.pop(0) if self.left and frame[:2] == self.which else None


class Seeded:
    """Faults at random, the same for the same seed and order of frames.

    Args:
        seed: of the generator.
        rate: share of the frames that something happens to.
        most: how many faults in all, so that a test comes to its end.
        delay: seconds at most.
        swallow: whether responses may never come; clients need a short request timeout then. Those to JoinGroup come:
            for them clients wait as long as a rebalance may take.
    """

    def __init__(self, seed: int, *, rate: float, most: int, delay: float = 0.2, swallow: bool = False) -> None:
        self.random = Random(seed)
        self.rate, self.left, self.delay = rate, most, delay
        self.kinds: dict[Direction, list[str]] = {
            "request": ["cut", "delay"],
            "response": ["cut", "delay", "duplicate", "truncate", *(["swallow"] if swallow else [])],
        }

    def __call__(self, frame: Frame) -> Fault | None:
        if not self.left or self.random.random() >= self.rate:
            return None
        self.left -= 1
        match self.random.choice(self.kinds[frame.direction]):
            case "swallow" if frame.api != "JoinGroup":
                return Swallow()
            case "cut":
                return Cut(self.random.randrange(frame.size + 1))
            case "truncate":
                return Truncate(self.random.randrange(frame.size - 4))
            case "delay":
                return Delay(self.random.uniform(0, self.delay))
            case _:
                return Duplicate()
