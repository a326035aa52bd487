"""A leader places tasks, and lets them warm up, as the broker does for a streams group with the same members."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kohort.client.streams.classic.group_members import choose_topology, read_members
from kohort.client.streams.classic.led_group import JoinedMember, LeaderSettings
from kohort.client.streams.classic.placing import place_tasks
from kohort.client.streams.classic.subscription import Subscription, encode_subscription
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.streams.configured_topology import configure
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology_messages import topology_of
from tests.coordinator.streams.driver import App, Driver, stateful, stateless

PARTS = [stateful("0", "in"), stateless("1", "other"), stateful("2", "more")]
END = 1000


def driver(partitions: tuple[int, int, int], standbys: int, warmups: int) -> Driver:
    counts = dict(zip(("in", "other", "more"), partitions, strict=True))
    changelogs = {"app-store-0-changelog": counts["in"], "app-store-2-changelog": counts["more"]}
    return Driver(
        counts | changelogs,
        StreamsSettings(
            initial_rebalance_delay_ms=0,
            assignment_interval_ms=0,
            num_standby_replicas=standbys,
            num_warmup_replicas=warmups,
            acceptable_recovery_lag=10,
            rack_aware_assignment_tags=("zone",),
        ),
    )


def joined(app: App) -> JoinedMember:
    said = Subscription(
        tasks=app.tasks,
        offsets=app.offsets,
        ends=app.ends,
        process_id=app.process,
        client_tags=app.tags,
        topology=topology_of(app.topology),
    )
    return JoinedMember(app.name, None, encode_subscription(said))


def led(world: Driver, apps: list[App]) -> Mapping[str, Mapping[TaskId, Role]]:
    """What the leader of a classic group of these members decides."""
    settings = LeaderSettings(
        num_standby_replicas=world.settings.num_standby_replicas,
        max_warmup_replicas=world.settings.num_warmup_replicas,
        acceptable_recovery_lag=world.settings.acceptable_recovery_lag,
        rack_aware_assignment_tags=world.settings.rack_aware_assignment_tags,
    )
    members = read_members(map(joined, apps), settings.latest)
    topology = choose_topology(members, topology_of(apps[0].topology)).topology
    configured = configure(topology, world.cluster.partitions, world.cluster.matching)
    return place_tasks(members, members.read, configured, settings, {}).tasks


def placed(world: Driver, apps: list[App]) -> dict[str, Mapping[TaskId, Role]]:
    """What the broker has decided."""
    refined = world.group.soft.refined
    assert refined is not None
    return {app.name: refined.tasks.get(app.name, {}) for app in apps}


@given(
    st.tuples(*[st.integers(1, 6)] * 3),
    st.integers(0, 2),
    st.integers(0, 3),
    st.lists(st.sampled_from(["east", "west"]), min_size=1, max_size=5),
)
def test_members_that_join_one_by_one(
    partitions: tuple[int, int, int], standbys: int, warmups: int, zones: list[str]
) -> None:
    world = driver(partitions, standbys, warmups)
    apps: list[App] = []
    for number, zone in enumerate(zones):
        app = App(world, f"member-{number}", *PARTS, tags={"zone": zone}, reports=True)
        expected = led(world, [*apps, app])
        app.join()
        apps.append(app)
        assert placed(world, apps) == expected
        for _ in range(12):  # until all have what they are to have, and warm-ups are done
            for each in apps:
                each.full()
                stores = [task for task in each.tasks if task.subtopology != "1"]
                each.offsets |= dict.fromkeys(stores, END)
                each.ends |= dict.fromkeys(stores, END)
                each.report()
