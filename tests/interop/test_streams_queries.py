"""Standbys and interactive queries: any instance knows who has a key, and a standby takes over from one killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..waiting import eventually
from .streams_apps import WITHIN, Fleet, Instance, share, tasks
from .streams_words import WORDS, Lines, Output

pytestmark = pytest.mark.long

ALL = tasks(_0=3, _1=3)
STATEFUL = frozenset(tasks(_1=3))


def backed_up(*instances: Instance) -> bool:
    """Whether each stateful task has one standby, caught up, and never where the task itself is."""
    standbys = sorted(task for instance in instances for task in instance.tasks.standby)
    apart = not any(instance.tasks.active & instance.tasks.standby for instance in instances)
    return standbys == sorted(STATEFUL) and apart and all(caught_up(instance) for instance in instances)


def caught_up(instance: Instance) -> bool:
    """Whether its stores lack nothing but the end of a transaction, which only counts as an offset."""
    return all(lag <= 1 for partitions in instance.lags().values() for lag in partitions.values())


class Counting:
    """Word count with a standby of each task, and what the instances must answer."""

    def __init__(self, fleet: Fleet, application: str) -> None:
        self.fleet, self.application = fleet, application
        self.source, self.target = fleet.topic(f"{application}-in", 3), fleet.topic(f"{application}-out", 2)
        self.lines = Lines(fleet.server.bootstrap, self.source, 3)
        self.output = Output(fleet.server.bootstrap, self.target, 2)
        fleet.configure(application, streams__num__standby__replicas="1")

    def start(self, *, own: bool = False) -> Instance:
        process = self.fleet.process() if own else None
        topics = {"source": self.source, "target": self.target}
        return self.fleet.start(self.application, "word-count", process=process, **topics)

    def write(self) -> None:
        """More lines, counted when this returns."""
        self.lines.write(60)
        eventually(lambda: self.output.counts() == self.lines.counts(), within=WITHIN, what="all is counted, and once")

    def check(self, *instances: Instance) -> None:
        """Whichever is asked knows who has a word and who its standby is; both have the right count of it."""
        by_host = {instance.host: instance for instance in instances}
        counts = self.lines.counts()

        def right(asked: Instance, word: str) -> bool:
            answer = asked.query(word)
            owner, standbys = by_host.get(answer["active"]), [by_host.get(host) for host in answer["standbys"]]
            if owner is None or len(standbys) != 1 or standbys[0] in (None, owner):
                return False
            return owner.query(word).get("value") == counts[word] == standbys[0].query(word, stale=True).get("value")

        for word in WORDS[:6]:
            for asked in instances:
                eventually(
                    lambda asked=asked, word=word: right(asked, word),
                    what=f"{asked.host} knows who has {word}: {asked.query(word)}",
                )


def test_a_standby_takes_over(fleet: Fleet, new_name: Callable[[], str]) -> None:
    job = Counting(fleet, new_name())
    a, b = job.start(), job.start(own=True)
    eventually(lambda: share([a, b], ALL), within=WITHIN, what="two share the tasks")
    job.write()
    eventually(lambda: backed_up(a, b), within=WITHIN, what="there are standbys")
    job.check(a, b)
    assert a.tasks.standby, "it has standbys of the other"
    b.process.kill()
    eventually(lambda: share([a], ALL), within=WITHIN, what="one takes over")
    job.write()
    c = job.start()
    eventually(lambda: share([a, c], ALL) and backed_up(a, c), within=WITHIN, what="there are standbys again")
    job.write()
    job.check(a, c)
    job.output.close()
