"""Consumers of both protocols come, go on and leave in any order: no partition is ever with two of them.

The group is now classic, now a consumer group. Static members are replaced by new programs of either protocol. Appends
fail at random, which changes nothing. The log makes the same group, and restarts do, too.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kohort.client.assignors import ASSIGNORS
from kohort.client.membership.consumer_protocol import decode_assignment, decode_subscription, encode_assignment
from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import Call
from tests.coordinator.conversion.driver import Driver, Partitions, assert_replayed, snapshot, told

NOTHING: Partitions = frozenset()
ERROR = ErrorCode.NOT_ENOUGH_REPLICAS
NEW_NAME = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
STARTS_OVER = (*NEW_NAME, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH)


class Classic:
    """A consumer of the classic protocol.

    Attributes:
        eager: whether it gives up everything before it joins again.
        waiting: a JoinGroup or SyncGroup that isn't answered yet.
    """

    def __init__(self, eager: bool, instance: str | None) -> None:
        self.eager = eager
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.owned = NOTHING
        self.waiting: Call | None = None
        self.joining = True
        self.assignments: dict[str, bytes] = {}

    def step(self, driver: Driver) -> None:
        """Sends its next request; at once only what is answered at once."""
        if self.waiting is not None:
            return
        if self.joining:
            if self.eager:
                self.owned = NOTHING
            self.waiting = driver.rejoin(self.member_id, owned=self.owned, instance=self.instance)
        elif self.assignments or self.generation < 0:
            self.waiting = driver.sync(self.member_id, abs(self.generation), self.assignments, instance=self.instance)
        else:
            self._told(driver.heartbeat(self.member_id, self.generation, instance=self.instance))

    def take_answer(self) -> None:
        if self.waiting is None or not self.waiting.answered:
            return
        call, self.waiting = self.waiting, None
        if call.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = call.response.member_id
        elif call.error:
            self._told(call.error)
        elif self.joining:
            self._joined(call.response)
        else:
            self.generation, self.assignments = abs(self.generation), {}
            assigned = decode_assignment(call.response.assignment)
            self.joining = not self.eager and not self.owned <= assigned
            self.owned = assigned

    def _joined(self, response: Any) -> None:
        self.joining = False
        self.member_id = response.member_id
        self.generation = -response.generation_id  # until it has synced
        if response.leader == self.member_id:
            members = {each.member_id: decode_subscription(each.metadata) for each in response.members}
            targets = ASSIGNORS["cooperative-sticky"].assign(members, {"a": 6})
            self.assignments = {member_id: encode_assignment(theirs) for member_id, theirs in targets.items()}

    def _told(self, code: ErrorCode) -> None:
        if code in STARTS_OVER:
            self.owned = NOTHING
            self.member_id = "" if code in NEW_NAME else self.member_id
        self.joining = self.joining or code in (*STARTS_OVER, ErrorCode.REBALANCE_IN_PROGRESS)
        if self.joining:
            self.assignments = {}

    def leave(self, driver: Driver) -> None:
        if self.member_id:
            driver.leave((self.member_id, self.instance))

    def is_replaced(self, driver: Driver) -> None:
        """The program ends without a word."""


class Modern:
    """A consumer of the consumer protocol."""

    def __init__(self, member_id: str, instance: str | None) -> None:
        self.member_id = member_id
        self.instance = instance
        self.epoch = 0
        self.owned = NOTHING
        self.waiting: Call | None = None

    def step(self, driver: Driver) -> None:
        response = driver.beat(self.member_id, self.epoch, owned=self.owned, instance=self.instance)
        code = ErrorCode(response.error_code)
        if code in STARTS_OVER:
            self.epoch, self.owned = 0, NOTHING
        elif not code:
            self.epoch = response.member_epoch
            self.owned = told(response) if response.assignment is not None else self.owned

    def take_answer(self) -> None:
        """All its requests are answered at once."""

    def leave(self, driver: Driver) -> None:
        if self.epoch:
            driver.beat(self.member_id, -1, instance=self.instance)

    def is_replaced(self, driver: Driver) -> None:
        """It leaves for a while, as programs with an instance id do."""
        if self.epoch:
            driver.beat(self.member_id, -2, instance=self.instance)


class Consumers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver(group_initial_rebalance_delay_ms=0)
        self.clients: list[Classic | Modern] = []
        self.names = 0

    @precondition(lambda self: len(self.clients) < 4)
    @rule(modern=st.booleans(), eager=st.booleans(), instance=st.sampled_from([None, None, "i1", "i2"]))
    def start(self, modern: bool, eager: bool, instance: str | None) -> None:
        for client in [each for each in self.clients if instance is not None and each.instance == instance]:
            self.clients.remove(client)
            client.is_replaced(self.driver)
        self.names += 1
        self.clients.append(Modern(f"modern-{self.names}", instance) if modern else Classic(eager, instance))
        self.deliver()

    @rule()
    def restart(self) -> None:
        self.driver.restart()
        for client in self.clients:
            client.waiting = None

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 3), times=st.integers(1, 4))
    def go_on(self, which: int, times: int) -> None:
        for _ in range(times):
            self.clients[which % len(self.clients)].step(self.driver)
            self.deliver()

    @precondition(lambda self: self.clients)
    @rule(which=st.integers(0, 3))
    def leave(self, which: int) -> None:
        self.clients.pop(which % len(self.clients)).leave(self.driver)
        self.deliver()

    @precondition(lambda self: any(isinstance(client, Modern) for client in self.clients))
    @rule(which=st.integers(0, 3))
    def fail(self, which: int) -> None:
        """A heartbeat of the consumer protocol while records can't be appended."""
        modern = [client for client in self.clients if isinstance(client, Modern)]
        client, before = modern[which % len(modern)], snapshot(self.driver.shard)
        self.driver.append_error = ERROR
        self.driver.beat(client.member_id, client.epoch, owned=client.owned)
        self.driver.append_error = None
        assert snapshot(self.driver.shard) == before

    def deliver(self) -> None:
        self.driver.sleep(0)
        for client in self.clients:
            client.take_answer()

    @invariant()
    def nobody_has_what_another_has(self) -> None:
        owned = [partition for client in self.clients for partition in client.owned]
        assert len(owned) == len(set(owned))

    @invariant()
    def the_log_makes_the_same_group(self) -> None:
        assert_replayed(self.driver)

    def teardown(self) -> None:
        """In the end, when the sessions are over of those that are gone, all partitions are with somebody."""
        for _ in range(40):
            for client in self.clients:
                client.step(self.driver)
                self.deliver()
            self.nobody_has_what_another_has()
            self.driver.sleep(2_000)
            self.deliver()
        if self.clients:
            assert sum(len(client.owned) for client in self.clients) == 6, [vars(client) for client in self.clients]


TestConsumers = Consumers.TestCase
TestConsumers.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
