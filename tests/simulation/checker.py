"""What must hold after every step, whatever happens.

The checker keeps books of its own from what it sees on the wire, and compares them with the groups that a step touched:

- a partition has one owner in a generation, and is given only to whom the log says;
- a member is removed at its session timeout, not before and not after, or for a reason that the protocol knows;
- a dynamic member is in a generation only if it was told so;
- a request is answered once, and once everybody has calmed down, every one was;
- the state between rebalances is that which a replay of the log comes to, offsets included;
- generations in the log only rise, and their leaders alone assign.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from kohort.coordinator.classic.states import GroupState
from kohort.coordinator.step import Record
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Data
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key
from kohort.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kohort.protocol.stored.offset_commit import OffsetCommitKey
from tests.simulation.books import Book, Call, InvariantError, persisted, written

if TYPE_CHECKING:
    from tests.simulation.world import ClassicWorld

ALIVE = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})
REFUSED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)
RESTING = frozenset({GroupState.STABLE, GroupState.EMPTY})


class Checker:
    """Watches a world."""

    def __init__(self, world: ClassicWorld) -> None:
        self.world = world
        self.books: dict[str, Book] = {}
        self.open: set[Call] = set()
        self.values: dict[str, GroupMetadataValue] = {}  # what the log has
        self._cause: Call | None = None  # the request that arrived last
        self._given: dict[tuple[str, int], dict[str, bytes]] = {}  # assignments by owner, in a generation
        self._owners: dict[tuple[str, int], dict[bytes, str]] = {}  # and owners by partition
        self._deadlines: list[tuple[int, str, str]] = []  # of members
        self._phases: list[tuple[int, str, int]] = []  # ends of waits: when, of which group, in which generation

    def fail(self, group_id: str, what: str) -> None:
        group = self.world.shard.classic.get(group_id)
        raise InvariantError(f"at {self.world.now}, {group or group_id}: {what}")

    def book(self, group_id: str) -> Book:
        book = self.books.get(group_id)
        if book is None:
            book = self.books[group_id] = Book()
        return book

    # Signs of life ----------------------------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, code: ErrorCode) -> None:
        if code in ALIVE:
            self.hear(request.group_id, request.member_id)
        group = self.world.shard.classic.get(request.group_id)
        if group is not None:
            book = self.book(request.group_id)
            if group.state is not book.state or group.generation != book.generation:
                self.fail(request.group_id, "a heartbeat changed its state")
            if len(group.members) != len(book.members):
                self.fail(request.group_id, "a heartbeat changed its members")
            if code in ALIVE and (code is ErrorCode.NONE) == (group.state is GroupState.PREPARING_REBALANCE):
                self.fail(request.group_id, f"a heartbeat got {code.name} in {group.state}")

    def hear(self, group_id: str, member_id: str) -> None:
        book = self.book(group_id)
        book.last_heartbeat[member_id] = self.world.now
        if member_id not in book.watched and member_id in book.session:
            book.watched.add(member_id)
            heapq.heappush(self._deadlines, (self.world.now + book.session[member_id], group_id, member_id))

    def check_deadlines(self) -> None:
        """No member outlives its session timeout."""
        now = self.world.now
        while self._deadlines and self._deadlines[0][0] <= now:
            _, group_id, member_id = heapq.heappop(self._deadlines)
            book = self.book(group_id)
            book.watched.discard(member_id)
            group = self.world.shard.classic.get(group_id)
            if not self.world.up or group is None or member_id not in group.members:
                continue
            deadline = self._deadline(book, member_id)
            if deadline > now:
                book.watched.add(member_id)
                heapq.heappush(self._deadlines, (deadline, group_id, member_id))
            elif member_id in book.new or not (member_id in group.joining or member_id in group.syncing):
                self.fail(group_id, f"{member_id} is there though it was to be removed at {deadline}")

        while self._phases and self._phases[0][0] <= now:
            _, group_id, generation = heapq.heappop(self._phases)
            group = self.world.shard.classic.get(group_id)
            if self.world.up and group is not None and group.generation == generation:
                self._check_phase(self.book(group_id), group)

    def _check_phase(self, book: Book, group: ClassicGroup) -> None:
        """No group waits for members longer than these may take."""
        now = self.world.now
        if group.state is GroupState.PREPARING_REBALANCE:
            if group.joining and now >= book.waiting + book.wait_ms:
                self.fail(group.group_id, f"joins wait since {book.waiting}")
        elif group.pending_sync and now >= book.completing + book.sync_ms:
            self.fail(group.group_id, f"{group.pending_sync} haven't synced since {book.completing}")

    def _deadline(self, book: Book, member_id: str) -> int:
        timeout = NEW_MEMBER_JOIN_TIMEOUT_MS if member_id in book.new else book.session[member_id]
        return book.last_heartbeat[member_id] + timeout

    # Requests and answers ---------------------------------------------------------------------------------------

    def arrived(self, call: Call) -> None:
        self.open.add(call)
        self._cause = call

    def answered(self, call: Call, response: Any) -> None:
        self.open.discard(call)
        if call.kind == "join":
            self._answered_join(call, ErrorCode(response.error_code), response)
        elif call.kind == "sync":
            self._answered_sync(call, ErrorCode(response.error_code), response)
        elif call.kind == "commit":
            self._answered_commit(call, ErrorCode(response.topics[0].partitions[0].error_code))

    def _answered_join(self, call: Call, code: ErrorCode, response: Any) -> None:
        book = self.book(call.request.group_id)
        if code is not ErrorCode.NONE:
            return
        member_id = response.member_id
        book.joined[member_id] = response.generation_id
        returned = bool(call.request.group_instance_id) and not call.request.member_id
        if response.generation_id != book.generation or returned:
            self.hear(call.request.group_id, member_id)
        leads = response.leader == member_id
        if leads != bool(response.members):
            self.fail(call.request.group_id, f"{member_id} leads: {leads}, and sees {len(response.members)} members")

    def _answered_sync(self, call: Call, code: ErrorCode, response: Any) -> None:
        request = call.request
        book = self.book(request.group_id)
        waited = book.state is GroupState.COMPLETING_REBALANCE and code not in REFUSED
        if waited and request.member_id in book.members:
            self.hear(request.group_id, request.member_id)
        if code is not ErrorCode.NONE:
            if response.assignment:
                self.fail(request.group_id, f"an assignment with {code.name}")
            return
        stored = self.world.shadow.classic.get(request.group_id)
        member = stored.members.get(request.member_id) if stored is not None else None
        if stored is None or member is None or stored.generation != request.generation_id:
            self.fail(request.group_id, f"{request.member_id} got an assignment that the log doesn't have")
        elif member.assignment != response.assignment:
            self.fail(request.group_id, f"{request.member_id} got another assignment than the log has")
        owner = request.group_instance_id or request.member_id
        given = self._given.setdefault((request.group_id, request.generation_id), {})
        if given.setdefault(owner, response.assignment) != response.assignment:
            self.fail(request.group_id, f"{owner} had {given[owner]!r}, and got {response.assignment!r}")
        owners = self._owners.setdefault((request.group_id, request.generation_id), {})
        for partition in response.assignment.split():
            if owners.setdefault(partition, owner) != owner:
                self.fail(request.group_id, f"{partition!r} is {owner}'s and {owners[partition]}'s")

    def _answered_commit(self, call: Call, code: ErrorCode) -> None:
        request = call.request
        if code is not ErrorCode.NONE:
            return
        if request.generation_id_or_member_epoch >= 0:
            self.hear(request.group_id, request.member_id)
        ((topic,), (partition,)) = request.topics, request.topics[0].partitions
        for shard in (self.world.shard, self.world.shadow):
            stored = shard.offsets.committed(request.group_id, topic.name, partition.partition_index)
            if stored is None or stored.offset != partition.committed_offset:
                self.fail(request.group_id, f"committed {partition.committed_offset}, stored {stored}")

    # The log ----------------------------------------------------------------------------------------------------

    def appended(self, key: Data, value: Data | None) -> None:
        if isinstance(key, GroupMetadataKey):
            self.book(key.group).unsaved = False
            before = self.values.pop(key.group, None)
            if isinstance(value, GroupMetadataValue):
                if before is not None and value.generation < before.generation:
                    self.fail(key.group, f"generation {value.generation} after {before.generation}")
                if value.current_state_timestamp != self.world.now:
                    self.fail(key.group, f"written as of {value.current_state_timestamp}")
                cause = self._cause
                if cause is not None and cause.kind == "sync" and not cause.answered and value.members:
                    self._check_leader(value, cause.request)
                self.values[key.group] = value
            else:
                for ledger in (self._given, self._owners):
                    for generation in [item for item in ledger if item[0] == key.group]:
                        del ledger[generation]

    def _check_leader(self, value: GroupMetadataValue, request: SyncGroupRequest) -> None:
        if value.leader != request.member_id:
            self.fail(request.group_id, f"{request.member_id} assigns, {value.leader} leads")

    def append_failed(self, records: list[Record]) -> None:
        for key, _ in records:
            if isinstance(key, GroupMetadataKey):
                self.book(key.group).unsaved = True

    def stopped(self, gracefully: bool) -> None:
        """The requests that waited got an answer, or never will, their connections being gone."""
        for call in self.open if gracefully else ():
            self.fail(call.request.group_id, f"{call.kind} wasn't answered before the coordinator went")
        self.open.clear()

    def replayed(self) -> None:
        """Whatever the log has is there, and nothing else."""
        live, shadow = self.world.shard, self.world.shadow
        for group_id in {*live.classic.group_ids(), *shadow.classic.group_ids()}:
            # Groups of which only tombstones were left are known to the shadow alone, and are simple and empty there.
            if persisted(live.classic.get(group_id)) != persisted(shadow.classic.get(group_id)):
                self.fail(group_id, "a restart made something else of the log than reading it as it grew")

    def started(self) -> None:
        """Every member's session starts over."""
        self.books.clear()
        self._deadlines.clear()
        self._phases.clear()
        for group_id in self.world.shard.classic.group_ids():
            self.check(group_id, None)

    # Steps ------------------------------------------------------------------------------------------------------

    def check(self, group_id: str, cause: Call | None) -> None:
        """A step has touched a group: by a request, or by a timer."""
        group = self.world.shard.classic.get(group_id) if self.world.up else None
        book = self.book(group_id)
        if group is None:
            if book.members:
                self.fail(group_id, "it is gone with its members")
            del self.books[group_id]
            return
        for member_id in [member_id for member_id in book.members if member_id not in group.members]:
            self._check_removal(book, group, member_id, cause)
            for ledger in (book.last_heartbeat, book.session, book.joined):
                ledger.pop(member_id, None)
            book.new.discard(member_id)
        self._update(book, group)
        if group.state in RESTING and group.generation and not book.unsaved:
            stored = persisted(self.world.shadow.classic.get(group_id))
            if not persisted(group) == stored == written(self.values.get(group_id)):
                self.fail(
                    group_id, f"live {persisted(group)}, replayed {stored}, in the log {self.values.get(group_id)}"
                )

    def _update(self, book: Book, group: ClassicGroup) -> None:
        now = self.world.now
        rebalancing = group.state is GroupState.PREPARING_REBALANCE
        if rebalancing and (book.state is not group.state or group.generation != book.generation):
            book.began, book.rebalance_ms = now, group.rebalance_timeout_ms
            # Of members removed at the same moment, it may have waited for one a while.
            book.wait_ms = max(group.rebalance_timeout_ms, book.longest_ms)
            book.initial = book.state is GroupState.EMPTY
            if book.initial:
                book.rebalance_ms = self.world.settings.group_initial_rebalance_delay_ms
                book.wait_ms = max(book.wait_ms, book.rebalance_ms)
        if rebalancing and group.joining and (book.began == now or not book.joining):
            book.waiting = now
            heapq.heappush(self._phases, (now + book.wait_ms, group.group_id, group.generation))
        if group.state is GroupState.COMPLETING_REBALANCE and group.generation != book.generation:
            book.completing, book.sync_ms = now, group.rebalance_timeout_ms
            heapq.heappush(self._phases, (now + book.sync_ms, group.group_id, group.generation))
            book.new.clear()
            for member_id, member in group.members.items():
                if member.instance_id is None and book.joined.get(member_id) != group.generation:
                    self.fail(group.group_id, f"{member_id} is in a generation that it didn't join")
        for member_id, member in group.members.items():
            book.session[member_id] = member.session_timeout_ms
            if member_id not in book.members:
                if member_id in group.joining and member.is_new:
                    book.new.add(member_id)
                self.hear(group.group_id, member_id)
            elif member_id not in book.watched and book.last_heartbeat.get(member_id) == now:
                self.hear(group.group_id, member_id)
        if rebalancing and not book.initial and group.all_joined:
            self.fail(group.group_id, "everybody has joined, and it waits")
        book.longest_ms = group.rebalance_timeout_ms
        book.state = group.state
        book.generation = group.generation
        book.members = {member_id: member.instance_id for member_id, member in group.members.items()}
        book.joining = frozenset(group.joining)
        book.syncing = frozenset(group.syncing)
        book.pending_sync = frozenset(group.pending_sync)

    def _check_removal(self, book: Book, group: ClassicGroup, member_id: str, cause: Call | None) -> None:
        now = self.world.now
        instance_id = book.members[member_id]
        if cause is None:
            waits = member_id in book.joining or member_id in book.syncing
            expired = now >= self._deadline(book, member_id) and (member_id in book.new or not waits)
            rejoin_missed = (
                book.state is GroupState.PREPARING_REBALANCE
                and member_id not in book.joining
                and instance_id is None
                and now >= book.began + book.rebalance_ms
            )
            sync_missed = member_id in book.pending_sync and now >= book.completing + book.sync_ms
            legal = expired or rejoin_missed or sync_missed
        elif cause.kind == "leave":
            legal = any(
                member_id == member.member_id or (not member.member_id and member.group_instance_id == instance_id)
                for member in cause.request.members
            )
        elif cause.kind == "join":
            returned = instance_id is not None and instance_id == cause.request.group_instance_id
            full = cause.answered and cause.response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
            legal = (returned and not cause.request.member_id) or (full and cause.request.member_id == member_id)
        else:
            legal = False
        if not legal:
            last = book.last_heartbeat.get(member_id)
            why = cause and cause.kind
            self.fail(group.group_id, f"{member_id}, whose last heartbeat was at {last}, was removed; cause: {why}")

    def check_commits(self) -> None:
        """The offsets that a replay comes to are those that are live."""
        for key in self._offsets():
            live = self.world.shard.offsets.committed(key.group, key.topic, key.partition)
            stored = self.world.shadow.offsets.committed(key.group, key.topic, key.partition)
            if live is None or stored is None or live.offset != stored.offset:
                self.fail(key.group, f"offset {live}, in the log {stored}")

    def check_deleted(self, group_id: str) -> None:
        """Nothing of a deleted group is left."""
        left = [key for key in self._offsets() if key.group == group_id]
        if left or group_id in self.values or self.world.shard.classic.get(group_id):
            self.fail(group_id, f"deleted, and still there: {left}")

    def _offsets(self) -> Iterator[OffsetCommitKey]:
        for raw_key in self.world.log:
            _, key = decode_key(OFFSETS_TOPIC, raw_key)
            if isinstance(key, OffsetCommitKey):
                yield key
