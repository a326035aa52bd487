"""Groups of our members and our coordinator in virtual time, with heartbeats and answers that get lost.

Where members ask for that, they hear of news at once, and their connections break, too.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from kohort.client.backoff import Backoff
from kohort.client.streams.membership_manager import StreamsMembershipManager
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State
from kohort.coordinator.step import Client
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.heartbeat_wishes import wishes_of
from kohort.streams.tasks import Role
from tests.client.streams.simulated_tasks import ALL, STEP_MS, TOPOLOGY, SimulatedTasks
from tests.coordinator.streams.driver import GROUP, Driver

ANSWER_WITHIN_MS = 2_000
VERSION = 1
CLIENT = Client("client", "10.0.0.1", VERSION)
DISCONNECT_TIMEOUT_MS = 3_000


class Application(SimulatedTasks):
    """A member, and an application that takes its time. `has` is what it really does."""

    def __init__(self, world: SteppedSimulation, name: str, process: str, instance_id: str | None) -> None:
        self.world, self.name, self.process = world, name, process
        settings = MemberSettings(
            group_id=GROUP,
            topology=TOPOLOGY,
            member_id=name,
            process_id=process,
            instance_id=instance_id,
            disconnect_timeout_ms=DISCONNECT_TIMEOUT_MS if world.asks else None,
            held_heartbeats=world.asks,
        )
        self.member = StreamsMembershipManager(settings, Backoff(100, 1_000, world.random), leave_within_ms=5_000)
        super().__init__(world, self.member)
        self.missed_at: int | None = None
        self.connection, self.news_connection = object(), object()
        self.news: list[HeartbeatResult] = []
        self.waits_for_news = False
        self.member.begin(world.now)

    def step(self) -> None:
        random, now = self.world.random, self.world.now
        if random.random() < self.world.looks:
            self.take_events()
        self.work()
        if self.missed_at is not None:
            if self.missed_at <= now:
                self.missed_at = None
                self.member.on_failure(now)
        elif (due := self.member.due_at) is not None and due <= now:
            self.heartbeat()
        if self.waits_for_news or self.member.news_due_at is not None:
            self.watch()

    def watch(self) -> None:
        """Asks for news, or takes what there is; or the connection breaks."""
        now, streams = self.world.now, self.world.driver.shard.streams
        if self.waits_for_news and self.world.random.random() < self.world.losses / 4:
            self.waits_for_news = False
            self.news.clear()
            streams.disconnected(self.news_connection, now)
            streams.closed(self.news_connection)
            self.news_connection = object()
            self.member.on_news_failure(now)
        elif self.news:
            self.waits_for_news = False
            self.member.on_news(self.news.pop().response, now)
        elif not self.waits_for_news and (due := self.member.news_due_at) is not None and due <= now:
            request, self.waits_for_news = self.member.news_request(), True
            wishes = wishes_of(request.unknown_tags)
            assert wishes is not None
            self.world.counts["held"] += 1
            self.world.driver.perform(
                streams.hold(request, wishes, CLIENT, self.news_connection, now, self.news.append)
            )

    def heartbeat(self) -> None:
        now, fate = self.world.now, self.world.random.random()
        request = self.member.request(now, VERSION)
        if fate < self.world.losses:
            self.world.counts["faults"] += 1
            self.missed_at = now + self.world.random.randrange(ANSWER_WITHIN_MS)
            if fate < self.world.losses / 2:
                return
        self.world.counts["heartbeats"] += 1
        response = self.world.driver.send(request, CLIENT)
        if (timeout := self.world.driver.result.disconnect_timeout_ms) >= 0:
            self.world.driver.shard.streams.heard_over(self.connection, GROUP, self.name, timeout)
        self.world.driver.create_missing()
        if self.missed_at is None:
            self.member.on_response(response, now)


class SteppedSimulation:
    """Steps of `STEP_MS`, all choices drawn from one generator."""

    def __init__(self, seed: int, settings: StreamsSettings, *, asks: bool = False) -> None:
        self.random = Random(seed)
        self.asks = asks
        self.driver = Driver(settings=settings)
        self.applications: list[Application] = []
        self.gone: list[Application] = []
        self.losses = 0.1
        self.close_ms = 0
        self.looks = self.random.choice((0.3, 0.03))  # how often applications ask for events
        self.counts: Counter[str] = Counter()

    @property
    def now(self) -> int:
        return self.driver.now

    def start(self, instance_id: str | None = None) -> Application:
        number = len(self.applications) + len(self.gone)
        process = f"p{number // 2 if instance_id is None else instance_id}"
        self.applications.append(Application(self, f"m{number}", process, instance_id))
        return self.applications[-1]

    def run(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.driver.sleep(STEP_MS)
            for application in self.applications:
                application.step()
            for application in [one for one in self.applications if one.member.ended]:
                application.take_events()
                self.applications.remove(application)
                self.gone.append(application)
            self.check()

    def check(self) -> None:
        """Among members of the group, nobody has what another has. Who was thrown out may not know it yet."""
        group = self.driver.shard.streams.get(GROUP)
        members = {} if group is None else group.members
        inside = [
            one
            for one in self.applications
            if one.name in members and one.member.state is not State.FENCED and one.member.epoch
        ]
        running = Counter(task for one in inside for task, role in one.has.items() if role is Role.ACTIVE)
        assert not running or max(running.values()) == 1, running
        copies = Counter((one.process, task) for one in inside for task in one.has)
        assert not copies or max(copies.values()) == 1, copies

    def comes_to_rest(self) -> None:
        self.losses = 0.0
        self.run(90_000)
        assert all(one.at_peace for one in self.applications), [
            (one.name, one.member.state) for one in self.applications
        ]
        assert {one.member.epoch for one in self.applications} == {self.driver.group.assignment_epoch}
        running = [task for one in self.applications for task, role in one.has.items() if role is Role.ACTIVE]
        assert sorted(running) == sorted(ALL)


def settings(**more: int) -> StreamsSettings:
    return StreamsSettings(
        **{
            "initial_rebalance_delay_ms": 0,
            "heartbeat_interval_ms": 1_000,
            "session_timeout_ms": 15_000,
            "task_offset_interval_ms": 5_000,
            **more,
        }
    )


@pytest.mark.parametrize("asks", [False, True], ids=["as with Kafka", "with held heartbeats"])
@pytest.mark.parametrize("seed", [0, 1, 9, 47])
def test_members_come_and_go(seed: int, asks: bool) -> None:
    world = SteppedSimulation(seed, settings(num_standby_replicas=seed % 2, num_warmup_replicas=seed % 3), asks=asks)
    for _ in range(3):
        world.start()
        world.run(world.random.randrange(20_000))
    world.comes_to_rest()
    world.losses = 0.1
    for _ in range(3):
        leaver = world.random.choice(world.applications)
        if world.random.random() < 0.5:
            leaver.member.stop(world.now)
        else:
            leaver.has.clear()
            leaver.closing.clear()
            leaver.member.quit(world.now)
        world.start()
        world.run(world.random.randrange(20_000))
    world.comes_to_rest()
    assert world.counts["Revoked"]
    assert not world.counts["Lost"]  # after a lost answer it is told again
    assert bool(world.counts["held"]) is asks


@pytest.mark.parametrize("seed", [0, 9])
def test_members_that_are_thrown_out_come_back(seed: int) -> None:
    world = SteppedSimulation(seed, settings(session_timeout_ms=3_000, num_standby_replicas=1))
    world.losses = 0.6
    for _ in range(4):
        world.start()
    world.run(120_000)
    world.comes_to_rest()
    assert world.counts["Lost"]


def test_who_does_not_give_up_its_tasks_in_time_is_thrown_out() -> None:
    world = SteppedSimulation(1, settings(num_warmup_replicas=0))
    world.losses = 0.0
    world.start()
    world.run(10_000)
    world.close_ms = 400_000
    world.start()
    world.run(310_000)
    assert world.counts["Lost"] == 1
    world.close_ms = 0
    world.run(400_000)
    world.comes_to_rest()


def test_a_static_member_comes_back_to_its_tasks() -> None:
    world = SteppedSimulation(1, settings(num_warmup_replicas=0))
    first, second = world.start("a"), world.start("b")
    world.comes_to_rest()
    had, epoch = dict(first.has), second.member.epoch
    first.member.stop(world.now)
    world.run(3_000)
    assert first.member.state is State.LEFT
    again = world.start("a")
    world.run(5_000)
    assert again.has == had
    assert second.member.epoch == epoch, "the other one has noticed nothing"
    world.comes_to_rest()


def test_a_restart_of_the_coordinator_moves_nothing() -> None:
    world = SteppedSimulation(1, settings())
    for _ in range(3):
        world.start()
    world.comes_to_rest()
    had = [dict(one.has) for one in world.applications]
    world.counts.clear()
    world.driver.restart()
    world.run(30_000)
    assert [one.has for one in world.applications] == had
    assert not world.counts.keys() & {"Assigned", "Revoked", "Lost", "RolesChanged"}


def test_two_members_talk_little() -> None:
    world = SteppedSimulation(1, settings(heartbeat_interval_ms=5_000))
    world.start()
    world.start()
    world.comes_to_rest()
    world.counts.clear()
    world.run(60_000)
    assert world.counts["heartbeats"] == 24


@pytest.mark.parametrize("standbys", [0, 1])
def test_members_that_hear_of_news_talk_little_too(standbys: int) -> None:
    world = SteppedSimulation(1, settings(heartbeat_interval_ms=5_000, num_standby_replicas=standbys), asks=True)
    for _ in range(2):
        world.start()
        world.run(1_000)
    world.comes_to_rest()
    world.counts.clear()
    world.run(60_000)
    assert world.counts["heartbeats"] == 24
    assert world.counts["held"] <= 26  # each interval one, and a step later the next


def test_a_member_that_dies_is_missed_at_once() -> None:
    world = SteppedSimulation(1, settings(session_timeout_ms=45_000, num_warmup_replicas=0), asks=True)
    first, second = world.start(), world.start()
    world.comes_to_rest()
    world.applications.remove(first)
    for connection in (first.connection, first.news_connection):
        world.driver.shard.streams.disconnected(connection, world.now)
        world.driver.shard.streams.closed(connection)
    world.run(DISCONNECT_TIMEOUT_MS + 5_000)
    assert set(second.has) == ALL
    world.comes_to_rest()
