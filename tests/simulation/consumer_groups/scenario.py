"""One simulated run of consumer groups: chaos for a while, then calm, in which every group has to find its peace."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random

from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.protocol.errors import ErrorCode
from tests.simulation.books import InvariantError
from tests.simulation.consumer_groups.member import Habits, Member
from tests.simulation.consumer_groups.world import ConsumerWorld

CHAOS_MS = 180_000
PAUSE_MS = 2_500
GROUPS = ("first", "second")
NAMES = ("orders", "payments", "clicks")
PATTERNS = ("orders|clicks", ".*s", "pay.*")


class Scenario:
    """Chaos, then calm; all of it follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        settings = ConsumerSettings(
            session_timeout_ms=rng.randint(6_000, 20_000),
            heartbeat_interval_ms=rng.choice([1_000, 3_000]),
            assignment_interval_ms=rng.choice([0, 0, 1_000, 4_000]),
            max_size=rng.choice([100, 100, 4]),
            regex_refresh_interval_ms=60_000,
        )
        self.world = ConsumerWorld(rng, settings, {"orders": rng.randint(1, 8), "payments": rng.randint(1, 5)})
        self._calm = False
        for group_id in GROUPS:
            for _ in range(rng.randint(1, 4)):
                self.world.after(rng.randrange(20_000), partial(self._start, self._habits(group_id)))

    def _habits(self, group_id: str) -> Habits:
        rng = self.rng
        pattern = rng.choice(PATTERNS) if rng.random() < 0.2 else None
        return Habits(
            group_id=group_id,
            topics=frozenset() if pattern else frozenset(rng.sample(NAMES, rng.choice([1, 2, 3]))),
            pattern=pattern,
            instance_id=f"instance-{rng.randrange(3)}" if rng.random() < 0.4 else None,
            assignor=rng.choice([None, None, "uniform", "range"]),
            rebalance_ms=rng.randint(5_000, 20_000),
            revoke_ms=rng.choice([200, 2_000, 2_000, 25_000]) if rng.random() < 0.3 else 500,
        )

    def _start(self, habits: Habits) -> None:
        """A client starts, unless its group is full of them; a static one takes the place of that of its name."""
        alive = [one for one in self.world.members.values() if one.group_id == habits.group_id]
        if habits.instance_id is not None:
            for one in alive:
                if one.habits.instance_id == habits.instance_id:
                    one.crash()
        if len(alive) < 6:
            Member(self.world, habits)

    # Chaos ----------------------------------------------------------------------------------------------------------

    def _mishap(self) -> None:
        if self._calm:
            return
        rng, world = self.rng, self.world
        world.after(rng.randrange(2 * PAUSE_MS), self._mishap)
        group_id = rng.choice(GROUPS)
        alive = [one for one in world.members.values() if one.group_id == group_id]
        kinds = ("crash", "leave", "start", "change", "freeze", "topic", "restart", "append", "settings")
        (kind,) = rng.choices(kinds, (4, 3, 8, 3, 4, 1.5, 0.6, 0.5, 0.5))
        world.note("mishap", kind, group_id)
        if kind == "restart":
            world.stop_coordinator()
            world.after(rng.choice([0, rng.randrange(20_000)]), world.start_coordinator)
        elif kind == "append":
            world.append_error = rng.choice([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR])
            world.after(rng.randrange(3_000), self._append_again)
        elif kind == "topic":
            name = rng.choice(NAMES)
            world.set_topic(name, min(12, world.topics.counts.get(name, 0) + rng.randint(1, 3)))
        elif kind == "settings":
            world.settings = replace(world.settings, assignment_interval_ms=rng.choice([0, 2_000]))
            if world.up:
                world.perform(world.shard.consumer.settings_changed())
        elif kind == "start":
            self._start(self._habits(group_id))
        elif alive:
            self._afflict(kind, rng.choice(alive))

    def _afflict(self, kind: str, member: Member) -> None:
        rng, world = self.rng, self.world
        if kind == "crash":
            member.crash()
            if rng.random() < 0.7:  # something starts it again
                world.after(rng.randrange(20_000), partial(self._start, member.habits))
        elif kind == "leave":
            member.leave()
        elif kind == "change":
            member.subscribe(frozenset(rng.sample(NAMES, rng.choice([1, 2]))))
        else:
            member.frozen = True
            world.after(rng.randrange(2 * world.settings.session_timeout_ms), member.thaw)

    def _append_again(self) -> None:
        self.world.append_error = None

    # Calm -----------------------------------------------------------------------------------------------------------

    def run(self) -> ConsumerWorld:
        """Run it, and raise `InvariantError` if anything was wrong."""
        world = self.world
        world.after(0, self._mishap)
        world.run(CHAOS_MS)
        self._calm = True
        world.faults = None
        world.append_error = None
        world.start_coordinator()
        world.settings = replace(world.settings, max_size=100)
        for name in NAMES:
            if name not in world.topics.counts:
                world.set_topic(name, 2)
        for member in list(world.members.values()):
            # Two that always take longer than they may would throw each other out for ever.
            member.habits = replace(member.habits, revoke_ms=500)
            member.thaw()
        world.run(120_000)
        world.calm_since = world.now
        world.run(60_000)
        for group_id in GROUPS:
            world.checker.check_peace(group_id)
        world.stop_coordinator()
        world.start_coordinator()
        world.run(20_000)
        for group_id in GROUPS:
            world.checker.check_peace(group_id)
        return world


def simulate(seed: int) -> Counter[str]:
    """Run one seed; counts of what happened.

    Raises:
        InvariantError: with the last events, and how to repeat the run.
    """
    scenario = Scenario(seed)
    try:
        world = scenario.run()
    except Exception as error:
        events = "\n".join(" ".join(map(str, event)) for event in scenario.world.trace)
        command = f"python -m tests.simulation --kind consumer --first {seed} --seeds 1"
        raise InvariantError(f"seed {seed}: {error}\nthe last events:\n{events}\nrepeat with: {command}") from error
    return Counter(seeds=1, groups=len(GROUPS), **world.counts)
