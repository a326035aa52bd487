"""A process: a disk, and instances one after the other; it crashes, freezes, and comes back."""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.runtime.cluster import Cluster
from tests.simulation.runtime.instance import Instance
from tests.simulation.runtime.stores import Disk


class Process:
    """A machine with its disk.

    Attributes:
        lives: how many instances there have been.
        instance: the one that there is.
        instance_id: of a static member.
        slow_ms: how long stores take to be opened, read, written and closed, at most.
        unheard_until: its heartbeats are lost until then, while everything else goes on.
    """

    def __init__(self, cluster: Cluster, process_id: str, instance_id: str | None, rebalance_timeout_ms: int) -> None:
        self.cluster, self.process_id = cluster, process_id
        self.instance_id, self.rebalance_timeout_ms = instance_id, rebalance_timeout_ms
        self.disk = Disk()
        self.lives = 0
        self.instance: Instance | None = None
        self.frozen = False
        self.slow_ms = cluster.rng.choice((20, 100, 1_000))
        self.unheard_until = 0
        self._asleep: list[Callable[[], object]] = []

    def when_awake(self, action: Callable[[], object]) -> None:
        """Do something as soon as it isn't frozen."""
        if self.frozen:
            self._asleep.append(action)
        else:
            action()

    def start(self) -> None:
        """Start an instance, unless there is one."""
        if self.instance is None:
            self.lives += 1
            self.instance = Instance(self)
            self.cluster.note(self.instance, "starts")

    def stop(self) -> None:
        """End in good order."""
        if self.instance is not None:
            self.cluster.note(self.instance, "is to stop")
            instance = self.instance
            self.when_awake(instance.stop)

    def crash(self, *, torn: bool = False, wiped: bool = False) -> None:
        """End at once. What is on its way to the brokers gets there."""
        if self.instance is None:
            return
        self.cluster.note(self.instance, "crashes", "torn" if torn else "", "wiped" if wiped else "")
        self.ended(self.instance)
        for task in sorted(self.disk.stores):
            for store in self.disk.stores[task].values():
                if torn:
                    store.tear(self.cluster.rng)
        if wiped:
            self.disk.wipe()

    def ended(self, instance: Instance) -> None:
        """An instance is gone."""
        if self.instance is instance:
            instance.alive = False
            self.instance = None
            self.disk.power_off()
            self.frozen = False
            self._asleep.clear()

    def freeze(self) -> None:
        """Stand still (SIGSTOP): what happens meanwhile is seen afterwards, all at once."""
        if self.instance is not None and not self.frozen:
            self.cluster.note(self.instance, "is frozen")
            self.frozen = True

    def thaw(self) -> None:
        """Go on as if nothing had happened."""
        if self.frozen:
            self.cluster.note(self.instance, "goes on")
            self.frozen = False
            asleep, self._asleep = self._asleep, []
            for action in asleep:
                self.when_awake(action)
