"""One classic group: its state, its members, and how they agree on a protocol. `rebalancer` moves it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from kohort.coordinator.classic.member import Member
from kohort.coordinator.classic.states import TRANSITIONS, GroupState
from kohort.coordinator.step import Reply
from kohort.protocol.errors import ErrorCode, ProtocolError
from kohort.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMERS: Final = "consumer"
"""The protocol type of consumers, whose subscriptions the coordinator can read."""

_INT16: Final = 2


class PendingReply(NamedTuple):
    """A JoinGroup or SyncGroup request that waits for its answer; `version` is the request's."""

    reply: Reply
    version: int


class ClassicGroup:
    """A classic group.

    Attributes:
        state: one of `states`; `transition_to` changes it.
        state_since: time of the latest transition, in ms since 1970; -1 if unknown.
        generation: rises by one with each rebalance; 0 before the first.
        protocol_type: what the group is for, such as "consumer"; None for a "simple" group, which has only offsets.
        protocol: the protocol that the members of this generation use; None while Empty.
        leader: member id of the member that assigns; None without members.
        members: by member id, in the order they came.
        static_ids: member ids of static members, by instance id.
        pending_members: ids given to clients that have yet to join with them (KIP-394).
        joining: JoinGroup requests that wait for the other members, by member id.
        syncing: SyncGroup requests that wait for the leader's, by member id.
        pending_sync: members of this generation that haven't sent SyncGroup, until the next generation begins.
        new_member_added: whether a member joined during the current initial rebalance delay.
        replacements: new selves of static members, by member id, while the record that replaces the old is written.
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
        self.pending_members: set[str] = set()
        self.joining: dict[str, PendingReply] = {}
        self.syncing: dict[str, PendingReply] = {}
        self.pending_sync: set[str] = set()
        self.new_member_added = False
        self.replacements: dict[str, Member] = {}
        self._support: Counter[str] = Counter()
        self._subscribed_topics: frozenset[str] | None = None

    def __repr__(self) -> str:
        members = len(self.members)
        return f"<group {self.group_id!r} {self.state.value} generation={self.generation} members={members}>"

    def transition_to(self, state: GroupState, now: int) -> None:
        """Changes the state.

        Raises:
            RuntimeError: the table has no such transition.
        """
        if state not in TRANSITIONS[self.state]:
            raise RuntimeError(f"group {self.group_id!r} can't go from {self.state.value} to {state.value}")
        self.state = state
        self.state_since = now

    # Members ----------------------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Adds a new member; the first one leads."""
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self._support.update(member.protocols.keys())
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: Member) -> None:
        """Removes a member; if it led, the one that has been here longest leads now."""
        del self.members[member.member_id]
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        self._withdraw(member)
        self.pending_sync.discard(member.member_id)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def replace_static_member(self, old: Member, new: Member) -> None:
        """Replaces a static member by its new self, which takes over its leadership."""
        led = self.leader == old.member_id
        self.remove(old)
        self.add(new)
        if led:
            self.leader = new.member_id

    def reset(self, members: Iterable[Member], leader: str | None, protocol: str | None) -> None:
        self.members = {member.member_id: member for member in members}
        self.static_ids = {
            member.instance_id: member.member_id for member in self.members.values() if member.instance_id is not None
        }
        self._support = Counter(name for member in self.members.values() for name in member.protocols)
        self.pending_sync &= self.members.keys()
        self.leader = leader
        self.protocol = protocol
        self.update_subscribed_topics()

    def change_protocols(self, member: Member, protocols: dict[str, bytes]) -> None:
        self._withdraw(member)
        member.protocols = protocols
        self._support.update(protocols.keys())

    def _withdraw(self, member: Member) -> None:
        """Counts a member's protocols as supported by one member fewer."""
        for name in member.protocols:
            self._support[name] -= 1
            if not self._support[name]:
                del self._support[name]

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether a request comes from a member: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if its instance id has moved.

        A static member that comes back gets a new member id. Its former self is fenced.
        """
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def should_keep_alive(self, member: Member) -> bool:
        """Whether a session timeout may pass: the member sent a heartbeat, waits for an answer, or is being removed.

        A member that waits for the answer to its first join isn't kept, since its client may be long gone.
        """
        if member.heartbeat_satisfied or member.is_leaving:
            return True
        return not member.is_new and (member.member_id in self.joining or member.member_id in self.syncing)

    def elect_joined_leader(self) -> bool:
        """Makes a member that has rejoined the leader, if the leader hasn't; False if no member has."""
        if self.leader in self.joining:
            return True
        self.leader = next((member_id for member_id in self.members if member_id in self.joining), self.leader)
        return self.leader in self.joining

    @property
    def all_joined(self) -> bool:
        """Whether every member has rejoined, and no pending member is expected."""
        return len(self.joining) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols --------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a member with these could join; INCONSISTENT_GROUP_PROTOCOL is the answer if not."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and any(True for _ in protocols)
        return protocol_type == self.protocol_type and any(
            self._support[name] == len(self.members) for name in protocols
        )

    @staticmethod
    def select_protocol(members: Collection[Member]) -> str:
        """The protocol with the most votes among those that all members know; of equals the one voted for first."""
        candidates = set.intersection(*(set(member.protocols) for member in members))
        return Counter(member.vote(candidates) for member in members).most_common(1)[0][0]

    def next_generation(self) -> None:
        """Begins a generation with the present members."""
        self.generation += 1
        self.protocol = self.select_protocol(self.members.values()) if self.members else None
        self.pending_sync.clear()
        self.update_subscribed_topics()

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """Topics that the members of this generation read; None if their subscriptions can't be read."""
        return self._subscribed_topics

    def update_subscribed_topics(self) -> None:
        """Reads the members' subscriptions, if all of them are consumers' ones."""
        self._subscribed_topics = None
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
        self._subscribed_topics = frozenset(topics)
