"""One simulated run: workers come and go while everything goes wrong, then calm, in which each job comes to its end."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Final

from kohort.spark.errors import ApplicationError
from tests.simulation.queues.world import Worker, World
from tests.simulation.share_partitions.world import LOCK_MS
from tests.spark.queues.virtual_time import run

_CHAOS_S: Final = 12.0
_CALM_S: Final = 600.0
_MISHAPS: Final = {"kill": 3, "stop": 2, "pause": 3, "restart": 1, "start": 6}


def simulate(seed: int) -> Counter[str]:
    """Run one seed; counts of what happened.

    Raises:
        InvariantError: something went wrong that must not.
    """
    return run(_simulate(seed))


async def _simulate(seed: int) -> Counter[str]:
    rng = Random(seed)
    world = World(rng, seed)
    loop = asyncio.get_running_loop()
    workers = [Worker(f"w{number}", world) for number in range(rng.choice((1, 2, 3)))]
    counts: Counter[str] = Counter()
    for worker in workers:
        worker.start()
    while loop.time() < _CHAOS_S:
        world.broker.log.produce()
        await asyncio.sleep(rng.choice((0.05, 0.5)))
        if rng.random() < 0.5:
            kind = rng.choices(list(_MISHAPS), list(_MISHAPS.values()))[0]
            counts[kind] += 1
            await _mishap(kind, world, rng.choice(workers), counts)
    world.rude = 0.0
    world.broker.store.fails = world.broker.store.unheard = 0.0
    for worker in workers:
        worker.go_on()
    while world.broker.partition.start_offset < world.broker.log.end or world.broker.under_way:
        world.demand(loop.time() < _CHAOS_S + _CALM_S, "jobs are left")
        for worker in workers:
            _start(worker, counts)
        await asyncio.sleep(LOCK_MS / 1000)
        world.broker.quiet()
    world.ended()
    for worker in workers:
        worker.check()
        await worker.kill()
    twice = sum(count > 1 for count in world.results.values())
    return counts + world.broker.counts + Counter(seeds=1, jobs=world.broker.log.end, twice=twice)


async def _mishap(kind: str, world: World, worker: Worker, counts: Counter[str]) -> None:
    match kind:
        case "kill":
            await worker.kill()
        case "stop":
            worker.stop()
        case "pause":
            worker.pause()
            world.broker.clock.after(world.rng.choice((300, 3 * LOCK_MS)), worker.go_on)
        case "restart":
            world.broker.crash()
            world.broker.store.fails = world.rng.choice((0.0, 0.0, 0.2))
        case _:
            _start(worker, counts)


def _start(worker: Worker, counts: Counter[str]) -> None:
    """Start it; one that gave up after too many failures is started by somebody, too."""
    try:
        worker.check()
    except ApplicationError:
        counts["gave up"] += 1
        worker.forget()
    worker.start()
