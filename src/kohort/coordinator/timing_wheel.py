"""Timers on a hierarchical wheel: adding and cancelling cost the same whether ten timers wait or a million.

Time is cut into ticks, and a timer's due tick into digits of base `wheel_size`. A timer lies in the level of the first
digit in which its tick differs from the wheel's own time, in the bucket of that digit:

    the wheel's time  4 17 63      a timer due at  4 17 63+1 = 4 18 0   lies in level 1, bucket 18
                      ^  ^  ^                      4 17 63              lies in level 0, bucket 63: it is due
                level 2  1  0                      5 0 12               lies in level 2, bucket 5

So all timers of a level are due before those in the levels above, and within a level the buckets are due in their
order: the next one is the lowest bit of the lowest level's mask. When the wheel's time reaches a bucket of level 0, its
timers run; when it reaches one of a level above, its timers move down to where they now belong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

__all__ = ["Timer", "TimingWheel"]


class Timer(ABC):
    """Something that runs at a deadline, in ms since 1970."""

    __slots__ = ("_bucket", "_order", "deadline")

    def __init__(self, deadline: int) -> None:
        self.deadline = deadline
        self._order = 0
        self._bucket: _Bucket | None = None

    @abstractmethod
    def run(self) -> None:
        """Called at the deadline."""

    @property
    def waiting(self) -> bool:
        """Whether it is on a wheel, and neither ran nor was cancelled."""
        return self._bucket is not None

    def cancel(self) -> bool:
        """Removes the timer from its wheel; False if it ran or was cancelled before."""
        bucket = self._bucket
        if bucket is None:
            return False
        self._bucket = None
        bucket.level.wheel._count -= 1
        timers = bucket.timers
        timers.remove(self)
        if not timers:
            bucket.level.mask ^= bucket.bit
        return True


class _Call(Timer):
    __slots__ = ("_callback",)

    def __init__(self, deadline: int, callback: Callable[[], object]) -> None:
        super().__init__(deadline)
        self._callback = callback

    def run(self) -> None:
        self._callback()


class _Bucket:
    """Timers whose due ticks share their digits down to this level."""

    __slots__ = ("bit", "level", "timers")

    def __init__(self, level: _Level, index: int) -> None:
        self.level = level
        self.bit = 1 << index
        self.timers: set[Timer] = set()


class _Level:
    """One digit of time; bit i of the mask is set while bucket i has timers."""

    __slots__ = ("buckets", "mask", "shift", "wheel")

    def __init__(self, wheel: TimingWheel, size: int, shift: int) -> None:
        self.wheel = wheel
        self.shift = shift
        self.mask = 0
        self.buckets = [_Bucket(self, index) for index in range(size)]


def _due_order(timer: Timer) -> tuple[int, int]:
    return timer.deadline, timer._order


class TimingWheel:
    """Timers in order of their deadlines. The owner has to call `advance` by `next_deadline`.

    Args:
        now: the time it begins at, in ms since 1970.
        tick_ms: resolution; with more than 1 a timer runs up to a tick late, never early.
        wheel_size: buckets a level, a power of two. As many levels are made as the farthest timer needs.

    Attributes:
        now: the time of the latest `advance`. Callbacks that set new deadlines count from here rather than from the
            deadline that they run for, which is in the past after a stall.
    """

    def __init__(self, now: int, tick_ms: int = 1, wheel_size: int = 64) -> None:
        if tick_ms < 1 or wheel_size < 2 or wheel_size & (wheel_size - 1):
            raise ValueError(f"tick_ms={tick_ms} has to be positive, wheel_size={wheel_size} a power of two")
        self.now = now
        self._tick_ms = tick_ms
        self._size = wheel_size
        self._bits = wheel_size.bit_length() - 1
        self._tick = now // tick_ms
        self._levels = [_Level(self, wheel_size, 0)]
        self._count = 0
        self._added = 0
        self._alarm = 0  # `_earlier` is called for deadlines before this

    def __len__(self) -> int:
        return self._count

    def add(self, deadline: int, callback: Callable[[], object]) -> Timer:
        """Schedules `callback` for the first `advance` that reaches `deadline`, in ms since 1970.

        With a deadline in the past it runs at the next `advance`, or, if one is under way, within that.
        """
        timer = _Call(deadline, callback)
        self.schedule(timer)
        return timer

    def schedule(self, timer: Timer) -> None:
        """Schedules a timer for the first `advance` that reaches its deadline; it must not be on a wheel already."""
        self._added = timer._order = self._added + 1
        self._count += 1
        self._place(timer)
        if timer.deadline < self._alarm:
            self._earlier()

    def _earlier(self) -> None:
        """Called when a timer is added that is due before `_alarm`, until which the owner sleeps. Does nothing here."""

    def next_deadline(self) -> int | None:
        """When to call `advance` next, in ms since 1970; None without timers.

        Less than a tick later than the first timer's deadline, or earlier, if timers have to move down a level then.
        """
        for level in self._levels:
            if mask := level.mask:
                return self._start(level, mask & -mask) * self._tick_ms
        return None

    def advance(self, now: int) -> int:
        """Runs the timers that are due at `now`, in the order of deadlines, and returns how many ran.

        Timers that callbacks add run too if they are due. A callback that raises ends this call; the others stay due.
        """
        self.now = now
        target = now // self._tick_ms
        ran = 0
        levels = self._levels
        while self._count:
            level = next(level for level in levels if level.mask)
            bit = level.mask & -level.mask
            tick = self._start(level, bit)
            if tick > target:
                break
            self._tick = tick
            bucket = level.buckets[bit.bit_length() - 1]
            if level.shift:
                timers, bucket.timers = bucket.timers, set()
                level.mask ^= bit
                for timer in timers:
                    self._place(timer)
                continue
            for timer in sorted(bucket.timers, key=_due_order):
                if timer.cancel():  # the callback of an earlier one may have cancelled it
                    ran += 1
                    timer.run()
        self._tick = max(self._tick, target)
        return ran

    def _place(self, timer: Timer) -> None:
        """Puts a timer into the level and bucket that the wheel's time gives."""
        tick = -(-timer.deadline // self._tick_ms)
        if (distance := tick ^ self._tick) >= self._size and tick > self._tick:
            number = (distance.bit_length() - 1) // self._bits
            while number >= len(self._levels):
                self._levels.append(_Level(self, self._size, len(self._levels) * self._bits))
            level = self._levels[number]
        else:
            level = self._levels[0]
            tick = max(tick, self._tick)
        bucket = level.buckets[(tick >> level.shift) & (self._size - 1)]
        timer._bucket = bucket
        level.mask |= bucket.bit
        bucket.timers.add(timer)

    def _start(self, level: _Level, bit: int) -> int:
        """The tick at which a bucket of a level is due."""
        above = level.shift + self._bits
        return (self._tick >> above << above) | (bit.bit_length() - 1) << level.shift
