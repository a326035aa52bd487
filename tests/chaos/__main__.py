"""Rounds of bad luck: records keep coming, something is killed or paused, and nothing may be lost or counted twice.

    python -m tests.chaos --rounds 20
    python -m tests.chaos --rounds 20 --program orders
    python -m tests.chaos --rounds 20 --program jobs
    python -m tests.chaos --rounds 3 --seed 7 --kafka
    python -m tests.chaos --rounds 3 --kafka 3.9 --group-protocol classic
    python -m tests.chaos --rounds 3 --kfake --group-protocol classic

Every round sends records, and meanwhile one thing happens to an instance or to the broker. After it, what the
application has put out, read by librdkafka (committed records only), must be what a batch over all records gives.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .field import SESSION_MS, Field, apache_kafka, kfake, kohort_broker
from .instances import Instance
from .jobs import Jobs
from .orders import OrdersAndPayments
from .results import FlightDelays
from .scenarios import INSTANCES, Scenario

Action = Callable[[], object]
Plan = list[tuple[float, str, Action]]
SCENARIOS: dict[str, Callable[[], Scenario]] = {each.name: each for each in (FlightDelays, OrdersAndPayments, Jobs)}


class Fate:
    """What happens in a round: things to do, and how long after its beginning (s).

    Args:
        field: where.
        instances: to whom.
        draw: the dice.
    """

    KINDS = ("kill", "pause", "broker", "kill both", "stop", "kill in a burst", "pause and broker")

    def __init__(self, field: Field, instances: list[Instance], draw: random.Random) -> None:
        self._server, self._instances, self._draw = field.server, instances, draw

    def plan(self, kind: str) -> Plan:
        """What to do, in order of time."""
        at = self._draw.uniform(0.5, 5)
        one = self._draw.choice(self._instances)
        back = at + self._draw.uniform(0.5, SESSION_MS / 1000 + 2)
        late = at + SESSION_MS / 1000 + self._draw.uniform(1, 3)
        pause: Plan = [(at, f"{one.name} is paused", one.pause), (late, f"{one.name} goes on", one.go_on)]
        broker: Plan = [
            (at, "the broker is killed", self._server.kill),
            (at + self._draw.uniform(0.1, 3), "the broker is back", self._server.start),
        ]
        match kind:
            case "kill":
                return self._kill(one, at, back)
            case "pause":
                return pause
            case "broker":
                return broker
            case "kill both":
                return [step for some in self._instances for step in self._kill(some, at, back)]
            case "stop":
                return [(at, f"{one.name} is stopped", one.stop), (back, f"{one.name} is started", one.start)]
            case "kill in a burst":  # twice, the second time while it comes up again
                return [*self._kill(one, at, at + 1), *self._kill(one, at + self._draw.uniform(8, 16), at + 17)]
            case _:
                return sorted([*pause, *broker], key=lambda step: step[0])

    def _kill(self, one: Instance, at: float, back: float) -> Plan:
        return [(at, f"{one.name} is killed", one.kill), (back, f"{one.name} is started", one.start)]


def main() -> int:
    """Run the rounds; 1 if any went wrong."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl+C: nothing is left behind
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, help="to see the same again; by default another one each time")
    parser.add_argument(
        "--kafka", nargs="?", const="4.4", choices=("4.4", "3.9", "3.3"),
        help="on Apache Kafka instead of Kohort's broker, the newest by default (needs Java)",
    )  # fmt: skip
    parser.add_argument("--kfake", action="store_true", help="on franz-go's broker for tests, which isn't Apache's")
    parser.add_argument("--group-protocol", choices=("streams", "classic", "auto"), default="streams")
    parser.add_argument(
        "--program", choices=SCENARIOS, default="flights",
        help="flights: their delays by airport and hour, with a table joined; orders: a join of streams, timers of "
        "both times, sessions; jobs: a work queue",
    )  # fmt: skip
    parser.add_argument("--records", type=int, default=6_000, help="records a round")
    parser.add_argument("--keep", type=Path, help="a directory to leave logs and journals in")
    options = parser.parse_args()
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    if options.kfake:
        broker, where = kfake(), "kfake"
    elif options.kafka:
        broker, where = apache_kafka(options.kafka), f"Apache Kafka {options.kafka}"
    else:
        broker, where = kohort_broker(), "kohort serve"
    say(f"{options.rounds} rounds on {where}, seed {seed}")
    with tempfile.TemporaryDirectory(prefix="kohort-chaos-") as scratch, broker as server:
        field = Field(server, options.keep or Path(scratch), options.group_protocol, SCENARIOS[options.program]())
        try:
            return rounds(field, options.rounds, options.records, random.Random(seed))
        finally:
            field.close()


def rounds(field: Field, number: int, records: int, draw: random.Random) -> int:
    """One after another; the first is quiet, so that all has begun."""
    instances = [field.instance(name) for name in INSTANCES]
    fate = Fate(field, instances, draw)
    kinds = deal(draw)
    for index in range(number + 1):
        kind = next(kinds) if index else "all is quiet"
        began = time.monotonic()
        say(f"round {index}: {kind}")
        plan = fate.plan(kind) if index else []
        for passed in field.send(draw.randrange(1 << 32), records, seconds=8):
            while plan and plan[0][0] <= passed:
                act(plan.pop(0), passed)
        while plan:
            time.sleep(max(0.0, began + plan[0][0] - time.monotonic()))
            act(plan.pop(0), time.monotonic() - began)
        differences = field.settle(patience=240)
        if differences:
            say(f"  WRONG: {len(differences)} results differ, the first: {differences[0]}")
            for instance in instances:
                say(f"  {instance.name}: {instance.tail()}")
            return 1
        if dead := [instance for instance in instances if not instance.runs]:
            say(f"  WRONG: {dead[0].name} has ended; {dead[0].tail()}")
            return 1
        took = time.monotonic() - began
        say(f"  {len(field.delivered):,} records, as a batch has them, after {took:.1f} s: {field.summary()}")
    for instance in instances:
        code = instance.stop()
        if code not in (0, -signal.SIGTERM):  # the latter while its Spark session is being made
            say(f"WRONG: {instance.name} ended with {code}; {instance.tail()}")
            return 1
    say(f"stream and batch were equal after each of {number} rounds")
    return 0


def act(step: tuple[float, str, Action], passed: float) -> None:
    """Do it, and say so."""
    _, text, do = step
    say(f"  {passed:4.1f} s: {text}")
    do()


def deal(draw: random.Random) -> Iterator[str]:
    """Every kind comes once before any comes again, in an order that the dice choose; the gravest three come first."""
    first = ["kill", "pause", "broker"]
    draw.shuffle(first)
    yield from first
    rest = [kind for kind in Fate.KINDS if kind not in first]
    draw.shuffle(rest)
    yield from rest
    while True:
        yield from draw.sample(Fate.KINDS, len(Fate.KINDS))


def say(text: str) -> None:
    """At once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
