"""The members of a classic streams group, as their leader reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kohort.client.streams.classic.led_group import JoinedMember
from kohort.client.streams.classic.subscription import Subscription, TooNewError, TopologyId, decode_subscription
from kohort.protocol.errors import shown
from kohort.streams.patterns import why_not
from kohort.streams.tasks import Role
from kohort.streams.topology import Topology


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """The members of a group, by member id.

    Attributes:
        read: what those said that could be read.
        static: instance ids of static members.
        too_new: members that wrote a version that the leader doesn't know.
        unreadable: members whose bytes make no sense, and why.
        version: the lowest that a member wrote in, and so the one to answer in.
        common: the newest that all members know.
    """

    read: Mapping[str, Subscription]
    static: Mapping[str, str]
    too_new: Collection[str]
    unreadable: Mapping[str, str]
    version: int
    common: int

    def process(self, member_id: str) -> str:
        """The process that a member runs in; one of its own if it doesn't say."""
        return self.read[member_id].process_id or member_id


def read_members(members: Iterable[JoinedMember], latest: int) -> GroupMembers:
    """Reads what members wrote. Never raises: one bad subscription must not stop a group.

    Args:
        latest: the newest version that the leader knows.
    """
    read: dict[str, Subscription] = {}
    static: dict[str, str] = {}
    too_new: set[str] = set()
    unreadable: dict[str, str] = {}
    version = common = latest
    for member_id, instance_id, data in members:
        if instance_id is not None:
            static[member_id] = instance_id
        try:
            found = decode_subscription(data, latest)
        except TooNewError:
            too_new.add(member_id)
        except ValueError as error:
            unreadable[member_id] = str(error)
        else:
            read[member_id] = found.subscription
            version, common = min(version, found.version), min(common, found.latest_supported)
    return GroupMembers(read, static, too_new, unreadable, version, common)


@dataclass(frozen=True, slots=True)
class GroupTopology:
    """The topology that a group runs.

    Attributes:
        stale: members that run another one, or one that can't be run, and what is to be said of it. They get no tasks.
        ids: which topology each member runs.
    """

    topology: Topology
    stale: Mapping[str, str]
    ids: Mapping[str, TopologyId]


def choose_topology(members: Mapping[str, Subscription], own: Topology) -> GroupTopology:
    """Returns the topology with the greatest epoch.

    If there are several of that epoch, it is the one that most active tasks are run by, then that of most members:
    a program that was changed without a new epoch doesn't take over from the one that runs. One with source patterns
    that can't be used never does.

    Args:
        own: the leader's. Members that don't say which one they run (before version 3) are taken to run this one.
    """
    by_member = {name: subscription.topology or own for name, subscription in members.items()}
    ids = {name: TopologyId.of(topology) for name, topology in by_member.items()}
    problems = {ids[name].fingerprint: why_not(topology) for name, topology in by_member.items()}
    able = {name: topology for name, topology in by_member.items() if problems[ids[name].fingerprint] is None}
    epoch = max((each.epoch for each in able.values()), default=own.epoch)
    support: dict[int, tuple[int, int]] = {}
    topologies: dict[int, Topology] = {}
    for name, topology in able.items():
        if topology.epoch == epoch:
            found = ids[name].fingerprint
            active = sum(role is Role.ACTIVE for role in members[name].tasks.values())
            tasks, others = support.get(found, (0, 0))
            support[found] = tasks + active, others + 1
            topologies[found] = topology
    chosen = max(topologies, key=lambda each: (support[each], each), default=None)
    stale = {}
    for name, topology in by_member.items():
        if (problem := problems[ids[name].fingerprint]) is not None:
            stale[name] = f"The member's topology {topology.epoch} can't be run: {problem}."
        elif topology.epoch < epoch:
            stale[name] = f"The member runs topology {topology.epoch}, the group runs {epoch}."
        elif ids[name].fingerprint != chosen:
            stale[name] = (
                f"The member's topology {epoch} isn't the group's topology {epoch}: it has subtopologies "
                f"{shown(sorted(topology.subtopologies))}. A changed topology needs a greater epoch."
            )
    return GroupTopology(own if chosen is None else topologies[chosen], stale, ids)
