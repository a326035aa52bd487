"""One simulated run: chaos, then calm, in which every record has to come to an end."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.simulation.share_partitions.member import Member
from tests.simulation.share_partitions.world import LOCK_MS, Broker

CHAOS_MS = 12_000
CALM_MS = 60_000
MISHAPS = {"stop": 4, "crash": 4, "start": 8, "restart": 1, "compact": 1, "cut": 0.5, "store": 4, "quiet": 6}


def simulate(seed: int) -> Counter[str]:
    """Raises InvariantError if anything goes wrong that must not; else what happened how often."""
    rng = Random(seed)
    broker = Broker(rng)
    broker.seed = seed
    members = [Member(f"member-{number}", broker, rng) for number in range(rng.choice([1, 2, 4]))]
    weights = [weight * rng.choice([0, 1, 2]) + 0.01 for weight in MISHAPS.values()]

    def produce() -> None:
        broker.log.produce()
        if broker.clock.now < CHAOS_MS:
            broker.clock.after(rng.choice([5, 50, 200]), produce)

    def mishap() -> None:
        if broker.clock.now >= CHAOS_MS:
            return
        broker.clock.after(rng.choice([10, 100, 500]), mishap)
        member = rng.choice(members)
        match rng.choices(list(MISHAPS), weights)[0]:
            case "stop" if member.runs:
                member.stop(crash=False)
            case "crash" if member.runs:
                member.stop(crash=True)
            case "start" if not member.runs:
                member.start()
            case "restart":
                broker.crash()
            case "compact":
                broker.log.compact()
            case "cut" if broker.log.batches:
                broker.log.cut(rng.choice(broker.log.batches)[0] + rng.choice([0, 1]))
            case "store":
                broker.store.fails = rng.choice([0, 0, 0.3, 1])
                broker.store.unheard = rng.choice([0, 0, 0.3])
            case "quiet":
                broker.quiet()

    def calm() -> None:
        broker.store.fails = broker.store.unheard = 0
        for member in members:
            member.calm = True
        if not members[0].runs:
            members[0].start()

    def often() -> None:
        broker.quiet()
        broker.clock.after(LOCK_MS // 2, often)

    for member in members:
        broker.clock.after(rng.randrange(100), member.start)
    broker.clock.after(0, produce)
    broker.clock.after(rng.choice([0, 1_000]), mishap)
    broker.clock.after(CHAOS_MS, calm)
    broker.clock.after(CHAOS_MS + 5 * LOCK_MS, often)
    while broker.clock.now < CHAOS_MS + CALM_MS:
        broker.clock.step()
        if broker.clock.now > CHAOS_MS + 5 * LOCK_MS and broker.partition.start_offset == broker.log.end:
            break
    broker.checker.ended(broker.partition, broker.settings.dead_letters)
    return broker.counts + Counter(seeds=1, records=broker.log.end)
