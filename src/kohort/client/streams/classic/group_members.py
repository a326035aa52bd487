"""The members of a classic streams group, as their leader reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kohort.client.streams.classic.led_group import JoinedMember
from kohort.client.streams.classic.subscription import Subscription, TooNewError, TopologyId, decode_subscription
from kohort.client.streams.classic.subscription_prefix import read_prefix
from kohort.protocol.errors import shown
from kohort.streams.patterns import why_not
from kohort.streams.tasks import Role
from kohort.streams.topology import Topology


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """The members of a group, by member id.

    Attributes:
        read: what those said that could be read.
        topology_ids: which topology these run.
        static: instance ids of static members.
        too_new: members that wrote a version that the leader doesn't know, and haven't heard of that yet.
        unreadable: members whose bytes make no sense, or that stay too new, and why.
        hidden: those of the unreadable that have tasks, whichever these are.
        version: the lowest that a member wrote in, and so the one to answer in.
        common: the newest that all members know.
    """

    read: Mapping[str, Subscription]
    topology_ids: Mapping[str, TopologyId]
    static: Mapping[str, str]
    too_new: Collection[str]
    unreadable: Mapping[str, str]
    hidden: Collection[str]
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
    topology_ids: dict[str, TopologyId] = {}
    static: dict[str, str] = {}
    too_new: set[str] = set()
    unreadable: dict[str, str] = {}
    hidden: set[str] = set()
    version = common = latest
    for member_id, instance_id, data in members:
        if instance_id is not None:
            static[member_id] = instance_id
        try:
            prefix = read_prefix(data)
        except ValueError as error:
            unreadable[member_id] = str(error)  # no release of ours wrote this, so it has none of our tasks
            continue
        try:
            found = decode_subscription(data, latest)
        except TooNewError as error:
            if not prefix.stays_too_new(latest):
                too_new.add(member_id)
                continue
            unreadable[member_id] = f"{error}, as it has heard"
        except ValueError as error:
            unreadable[member_id] = str(error)
        else:
            read[member_id], topology_ids[member_id] = found.subscription, found.topology_id
            version, common = min(version, found.version), min(common, found.latest_supported)
            continue
        if prefix.has_tasks:
            hidden.add(member_id)
    return GroupMembers(read, topology_ids, static, too_new, unreadable, hidden, version, common)


@dataclass(frozen=True, slots=True)
class GroupTopology:
    """The topology that a group runs.

    Attributes:
        stale: members that run another one, or one that can't be run, and what is to be said of it. They get no tasks.
        by_member: the topology that each member runs; None if the leader doesn't know it.
    """

    topology: Topology
    stale: Mapping[str, str]
    by_member: Mapping[str, Topology | None]


def choose_topology(group: GroupMembers, own: Topology) -> GroupTopology:
    """Returns the topology with the greatest epoch.

    If there are several of that epoch, it is the one that most active tasks are run by, then that of most members:
    a program that was changed without a new epoch doesn't take over from the one that runs. One with source patterns
    that can't be used never does.

    Args:
        own: the leader's. Members of versions before 3 say the id of their topology alone: it has to be this one, or
            another member's.
    """
    ids = group.topology_ids
    said = {ids[name]: each.topology for name, each in group.read.items() if each.topology is not None}
    known = {TopologyId.of(own): own, **said}
    by_member = {name: known.get(ids[name]) for name in group.read}
    problems = {ids[name]: why_not(topology) for name, topology in by_member.items() if topology is not None}
    able = {
        name: topology for name, topology in by_member.items() if topology is not None and problems[ids[name]] is None
    }
    epoch = max((each.epoch for each in able.values()), default=own.epoch)
    support: dict[int, tuple[int, int]] = {}
    topologies: dict[int, Topology] = {}
    for name, topology in able.items():
        if topology.epoch == epoch:
            found = ids[name].fingerprint
            active = sum(role is Role.ACTIVE for role in group.read[name].tasks.values())
            tasks, others = support.get(found, (0, 0))
            support[found] = tasks + active, others + 1
            topologies[found] = topology
    chosen = max(topologies, key=lambda each: (support[each], each), default=None)
    stale = {}
    for name, runs in by_member.items():
        if runs is None:
            stale[name] = f"The leader doesn't know the member's topology {ids[name].epoch}."
        elif (problem := problems[ids[name]]) is not None:
            stale[name] = f"The member's topology {runs.epoch} can't be run: {problem}."
        elif runs.epoch < epoch:
            stale[name] = f"The member runs topology {runs.epoch}, the group runs {epoch}."
        elif ids[name].fingerprint != chosen:
            stale[name] = (
                f"The member's topology {epoch} isn't the group's topology {epoch}: it has subtopologies "
                f"{shown(sorted(runs.subtopologies))}. A changed topology needs a greater epoch."
            )
    return GroupTopology(own if chosen is None else topologies[chosen], stale, by_member)
