"""One simulated run: chaos for a while, then calm, in which every group has to find its peace."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.shard import GroupSettings
from kohort.protocol.errors import ErrorCode
from tests.simulation.books import InvariantError
from tests.simulation.consumer import Consumer, Habits, Phase
from tests.simulation.world import ClassicWorld

# All know the same two: after a restart a group knows only the protocol that its members had agreed on.
PROTOCOLS = (("range", "sticky"), ("sticky", "range"), ("range", "sticky", "spare"))


@dataclass(frozen=True)
class Scale:
    """How much happens.

    Attributes:
        groups: number of groups.
        members: number of members a group, at most.
        chaos_ms: how long things go wrong.
        pause_ms: mean time between two mishaps.
        session_ms: the longest session timeout.
        rebalance_ms: the longest rebalance timeout.
    """

    groups: int
    members: int
    chaos_ms: int
    pause_ms: int
    session_ms: int = 15_000
    rebalance_ms: int = 20_000


SMALL = Scale(groups=3, members=6, chaos_ms=180_000, pause_ms=2_500)
LARGE = Scale(groups=250, members=16, chaos_ms=600_000, pause_ms=150, session_ms=30_000, rebalance_ms=60_000)
SIZES = {
    "small": SMALL,
    "medium": replace(LARGE, groups=50, pause_ms=750),  # each group of it has a life as in the large one
    "large": LARGE,
}


class Scenario:
    """Chaos, then calm; all of it follows from the seed."""

    def __init__(self, seed: int, scale: Scale) -> None:
        self.rng = rng = Random(seed)
        self.scale = scale
        settings = GroupSettings(group_initial_rebalance_delay_ms=rng.choice([0, 100, 3_000]))
        if rng.random() < 0.2:
            settings = replace(settings, group_max_size=max(2, scale.members - 2))
        self.world = ClassicWorld(rng, settings)
        self.consumers: dict[str, dict[str, Consumer]] = {f"group-{number}": {} for number in range(scale.groups)}
        self._zombies: list[Consumer] = []
        self._calm = False
        for group_id, consumers in self.consumers.items():
            for number in range(rng.randint(1, scale.members)):
                habits = self._habits(group_id, number)
                start = rng.choice([0, rng.randrange(30_000)])
                self.world.after(start, partial(self._start, consumers, habits))

    def _habits(self, group_id: str, number: int) -> Habits:
        rng = self.rng
        static = rng.random() < 0.4
        name = f"c{number}"
        return Habits(
            group_id=group_id,
            name=name,
            instance_id=name if static else None,
            session_ms=rng.randint(6_000, self.scale.session_ms),
            rebalance_ms=rng.randint(3_000, self.scale.rebalance_ms),
            version=rng.choice((9, 8, 5) if static else (9, 9, 5, 3, 0)),
            protocols=rng.choice(PROTOCOLS),
            slow=rng.random() < 0.1,
            confused=rng.random() < 0.05,
        )

    def _start(self, consumers: dict[str, Consumer], habits: Habits) -> None:
        if habits.name not in consumers or consumers[habits.name].gone:
            consumers[habits.name] = Consumer(self.world, habits, self._fenced)

    def _fenced(self, consumer: Consumer) -> None:
        """A static member lost its name: to a zombie of its own, so it comes again, or to its successor."""
        consumers = self.consumers[consumer.habits.group_id]
        if consumers.get(consumer.habits.name) is consumer:
            self.world.after(2_000, lambda: self._start(consumers, replace(consumer.habits)))

    # Chaos ------------------------------------------------------------------------------------------------------

    def _mishap(self) -> None:
        if self._calm:
            return
        rng = self.rng
        self.world.after(rng.randrange(2 * self.scale.pause_ms), self._mishap)
        group_id = rng.choice(list(self.consumers))
        consumers = self.consumers[group_id]
        alive = [consumer for consumer in consumers.values() if not consumer.gone]
        kinds = ("crash", "leave", "start", "change", "freeze", "delete", "restart", "append")
        (kind,) = rng.choices(kinds, (4, 3, 8, 3, 4, 1, 0.6, 0.5))
        if kind == "restart":
            self.world.stop_coordinator(rng.random() < 0.5)
            self.world.after(rng.choice([0, rng.randrange(20_000)]), self.world.start_coordinator)
        elif kind == "append":
            self.world.append_error = rng.choice([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR])
            self.world.after(rng.randrange(3_000), self._append_again)
        elif kind == "delete":
            empty = [group.group_id for group in self.world.shard.list_groups(["Empty"])]
            self.world.delete_group(rng.choice(empty or [group_id]))
        elif kind == "start":
            gone = [consumer.habits for consumer in consumers.values() if consumer.gone]
            self._start(consumers, replace(rng.choice(gone)) if gone else self._habits(group_id, len(consumers)))
        elif alive:
            self._afflict(kind, rng.choice(alive))

    def _afflict(self, kind: str, consumer: Consumer) -> None:
        rng, consumers = self.rng, self.consumers[consumer.habits.group_id]
        if kind == "crash":
            consumer.crash()
            if rng.random() < 0.7:  # something starts it again
                habits = replace(consumer.habits)
                self.world.after(rng.randrange(20_000), lambda: self._start(consumers, habits))
        elif kind == "leave":
            consumer.leave()
        elif kind == "change":
            consumer.change(("topic", f"topic-{rng.randrange(3)}"))
        else:
            consumer.frozen = True
            self.world.after(rng.randrange(2 * consumer.habits.session_ms), lambda: self._thaw(consumer))
            if consumer.habits.instance_id and rng.random() < 0.5:  # taken for dead: another takes its name
                self._zombies.append(consumer)
                consumers[consumer.habits.name] = Consumer(self.world, replace(consumer.habits), self._fenced)

    def _thaw(self, consumer: Consumer) -> None:
        consumer.frozen = False

    def _append_again(self) -> None:
        self.world.append_error = None

    # Calm -------------------------------------------------------------------------------------------------------

    def run(self) -> ClassicWorld:
        """Run it, and raise `InvariantError` if anything was wrong."""
        world = self.world
        world.after(0, self._mishap)
        world.run(self.scale.chaos_ms)
        self._calm = True
        world.faults = None
        world.append_error = None
        world.start_coordinator()
        for group_id in self.consumers:
            for consumer in self._everybody(group_id):
                consumer.frozen = False
                consumer.habits.slow = False
        # Whatever was lost is repeated after two rebalance timeouts, and that may bring another rebalance about.
        world.run(8 * self.scale.rebalance_ms + 4 * self.scale.session_ms + 30_000)
        self._check_peace()
        world.checker.check_commits()
        world.stop_coordinator(gracefully=True)
        world.start_coordinator()
        return world

    def _everybody(self, group_id: str) -> list[Consumer]:
        """The consumers of a group, with former selves that have got away with it."""
        return [*self.consumers[group_id].values(), *(one for one in self._zombies if one.habits.group_id == group_id)]

    def _check_peace(self) -> None:
        """Groups that are left alone are stable, with those members that live; requests have their answers."""
        world = self.world
        for call in world.checker.open:
            raise InvariantError(f"never answered: {call.kind} {call.request}")
        rebalancer = world.shard.classic.rebalancer
        waiting = sum(purgatory.delayed for purgatory in (rebalancer.heartbeats, rebalancer.joins, rebalancer.syncs))
        if len(world.wheel) != waiting:
            raise InvariantError(f"{waiting} operations wait, with {len(world.wheel)} timers")
        for group_id in self.consumers:
            everybody = self._everybody(group_id)
            alive = {consumer.member_id for consumer in everybody if consumer.phase is Phase.STABLE}
            unsettled = [one.habits.name for one in everybody if one.phase in (Phase.JOINING, Phase.SYNCING)]
            group = world.shard.classic.get(group_id)
            members = set(group.members) if group is not None else set()
            expected = GroupState.STABLE if members else GroupState.EMPTY
            full = len(members) >= world.settings.group_max_size
            if members != alive or (unsettled and not full):
                raise InvariantError(f"{group} has {members}; {alive} are stable, {unsettled} aren't")
            if group is not None and group.pending_members and not unsettled:
                raise InvariantError(f"{group} still expects {group.pending_members}")
            if group is not None and group.state is not expected:
                raise InvariantError(f"{group} isn't {expected}")


def simulate(seed: int, scale: Scale) -> Counter[str]:
    """Run one seed; counts of what happened.

    Raises:
        InvariantError: with the last events, and how to repeat the run.
    """
    scenario = Scenario(seed, scale)
    try:
        world = scenario.run()
    except Exception as error:
        size = next(name for name, known in SIZES.items() if known == scale)
        events = "\n".join(" ".join(map(str, event)) for event in scenario.world.trace)
        command = f"python -m tests.simulation --first {seed} --seeds 1 --size {size}"
        raise InvariantError(f"seed {seed}: {error}\nthe last events:\n{events}\nrepeat with: {command}") from error
    return Counter(
        seeds=1, heartbeats=world.heartbeats, requests=world.requests, restarts=world.restarts, groups=scale.groups
    )
