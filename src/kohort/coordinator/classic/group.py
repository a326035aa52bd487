"""One classic group: its members, and how they agree on a protocol. What happens when is for `rebalancer` to say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.states import TRANSITIONS, GroupState
from kohort.coordinator.step import Reply
from kohort.protocol.errors import ErrorCode, ProtocolError
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

__all__ = ["CONSUMERS", "ClassicGroup", "Waiting"]

CONSUMERS: Final = "consumer"
"""The protocol type of consumers, whose subscriptions the coordinator can read."""

_INT16: Final = 2


class Waiting(NamedTuple):
    """A join or a sync that waits for its answer, and the version it came in."""

    reply: Reply
    version: int


class ClassicGroup:
    """A classic group.

    Attributes:
        group_id: its id.
        state: where it stands; `become` moves it.
        state_since: since when, in ms since 1970; -1 if that isn't known.
        generation: rises by one with each rebalance; 0 before the first.
        protocol_type: what the group is for, such as "consumer"; None for a "simple" group, which has only offsets.
        protocol: the protocol that the members of this generation use; None while Empty.
        leader: member id of the one who assigns; None without members.
        members: by member id, in the order they came.
        static_ids: member ids of static members, by instance id.
        pending_ids: ids given to clients that have yet to join with them (KIP-394).
        joining: joins that wait for the others, by member id.
        syncing: syncs that wait for the leader's, by member id.
        unsynced: members of this generation that haven't sent SyncGroup.
        newcomers: in the first rebalance, members have come since the last look.
        arrivals: members that a record under way brings in, by id: static ones that replace themselves.
    """

    def __init__(self, group_id: str, now: int = -1) -> None:
        self.group_id: Final = group_id
        self.state = GroupState.EMPTY
        self.state_since = now
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static_ids: dict[str, str] = {}
        self.pending_ids: set[str] = set()
        self.joining: dict[str, Waiting] = {}
        self.syncing: dict[str, Waiting] = {}
        self.unsynced: set[str] = set()
        self.newcomers = False
        self.arrivals: dict[str, Member] = {}
        self._support: Counter[str] = Counter()
        self._topics: frozenset[str] | None = None

    def __repr__(self) -> str:
        members = len(self.members)
        return f"<group {self.group_id!r} {self.state.value} generation={self.generation} members={members}>"

    def become(self, state: GroupState, now: int) -> None:
        """Go to another state.

        Raises:
            RuntimeError: the table has no such transition.
        """
        if state not in TRANSITIONS[self.state]:
            raise RuntimeError(f"group {self.group_id!r} can't go from {self.state.value} to {state.value}")
        self.state = state
        self.state_since = now

    # Members ----------------------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Take in a new member; the first one leads."""
        self.members[member.member_id] = member
        self.pending_ids.discard(member.member_id)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self._support.update(member.protocols.keys())
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: Member) -> None:
        """Let a member go; if it led, the one that has been here longest leads now."""
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._withdraw(member)
        self.unsynced.discard(member.member_id)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old: Member, new: Member) -> None:
        """Put a static member in the place of its former self, leadership included."""
        led = self.leader == old.member_id
        self.remove(old)
        self.add(new)
        if led:
            self.leader = new.member_id

    def reset(self, members: Iterable[Member], leader: str | None, protocol: str | None) -> None:
        """Have these members and no others."""
        self.members = {member.member_id: member for member in members}
        self.static_ids = {
            member.instance_id: member.member_id for member in self.members.values() if member.instance_id is not None
        }
        self._support = Counter(name for member in self.members.values() for name in member.protocols)
        self.unsynced &= self.members.keys()
        self.leader = leader
        self.protocol = protocol
        self.note_topics()

    def change_protocols(self, member: Member, protocols: dict[str, bytes]) -> None:
        """Note what a member says it can work with now."""
        self._withdraw(member)
        member.protocols = protocols
        self._support.update(protocols.keys())

    def _withdraw(self, member: Member) -> None:
        """A member's protocols have one supporter less; those without any leave no trace."""
        for name in member.protocols:
            self._support[name] -= 1
            if not self._support[name]:
                del self._support[name]

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether a request comes from a member, and from the one that has the instance id now."""
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def keeps_alive(self, member: Member) -> bool:
        """Whether a deadline may pass without harm to a member: it was heard of, waits for an answer, or goes anyway.

        One that waits for the answer to its first join gets no such grace, since it may be a client long gone.
        """
        if member.heard or member.leaving:
            return True
        return not member.new and (member.member_id in self.joining or member.member_id in self.syncing)

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader has rejoined; False if no member has."""
        if self.leader in self.joining:
            return True
        self.leader = next((member_id for member_id in self.members if member_id in self.joining), self.leader)
        return self.leader in self.joining

    @property
    def all_joined(self) -> bool:
        """Whether every member has rejoined, and nobody is on the way in."""
        return len(self.joining) == len(self.members) and not self.pending_ids

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the slowest member wants a rebalance to wait for it."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols --------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a member with these could be one of this group's."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        return protocol_type == self.protocol_type and any(
            self._support[name] == len(self.members) for name in protocols
        )

    @staticmethod
    def elect_protocol(members: Collection[Member]) -> str:
        """The protocol with most votes among those that all members know; of equals the one voted for first."""
        candidates = set.intersection(*(set(member.protocols) for member in members))
        return Counter(member.vote(candidates) for member in members).most_common(1)[0][0]

    def next_generation(self) -> None:
        """Begin a generation with the members that there are."""
        self.generation += 1
        self.protocol = self.elect_protocol(self.members.values()) if self.members else None
        self.unsynced.clear()
        self.note_topics()

    @property
    def topics(self) -> frozenset[str] | None:
        """What the members of this generation read; None where the coordinator can't know."""
        return self._topics

    def note_topics(self) -> None:
        """Find out what the members read, if they are consumers and say it the way consumers do."""
        self._topics = None
        if self.protocol_type != CONSUMERS:
            return
        topics: set[str] = set()
        for member in self.members.values():
            try:
                # Every version of a subscription begins with its number, and goes on as version 0 does.
                metadata = memoryview(member.protocols[self.protocol or ""])[_INT16:]
                topics.update(ConsumerProtocolSubscription.read(metadata, 0, 0)[0].topics)
            except (KeyError, ProtocolError):
                return
        self._topics = frozenset(topics)
