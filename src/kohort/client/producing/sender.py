"""Sends batches: one task a broker, requests pipelined; answers are judged as they come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kohort.client.cluster import Cluster
from kohort.client.connection import Connection
from kohort.client.errors import AuthenticationError, ClientError, ConnectionLostError, UnsupportedError
from kohort.client.producing.accumulator import Accumulator
from kohort.client.producing.answers import AnswerJudge
from kohort.client.producing.batch import ProducerBatch
from kohort.client.producing.encoding import encode, stamp
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.produce_request import answers_for, endpoints, produce_request
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_client import TransactionClient
from kohort.client.producing.transactions import ProducerState
from kohort.client.producing.verdicts import Verdict
from kohort.client.server_cluster_info import Changes
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.produce import ProduceRequest, ProduceResponse

__all__ = ["Sender"]

log = logging.getLogger("kohort.client.producer")

_EXPLICIT: Final = 11
"""The newest version of Produce that doesn't add partitions to transactions by itself."""

_BY_NAME: Final = 12
"""The newest version of Produce with topics by name."""

_LEAST_LOOK_MS: Final = 20.0
_MOST_LOOK_MS: Final = 1000.0


class _Lane:
    """What goes to one broker."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.event = asyncio.Event()
        self.in_flight = 0
        self.task: asyncio.Task[None] | None = None
        self.trouble: Exception | None = None


class Sender:
    """The tasks that send, and the timers.

    Args:
        cluster, accumulator, state, settings: the producer's.
        judge: decides what becomes of batches.
        transactions: adds partitions to transactions.
        progressed: called when batches are done: there may be room for more.
    """

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        state: ProducerState,
        settings: ProducerSettings,
        judge: AnswerJudge,
        transactions: TransactionClient,
        progressed: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._state = state
        self._settings = settings
        self._judge = judge
        self._transactions = transactions
        self._progressed = progressed
        self._loop = asyncio.get_running_loop()
        self._lanes: dict[int, _Lane] = {}
        self._chore: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False
        self._stop_listening = cluster.on_change(self._cluster_changed)

    def now(self) -> float:
        """ms, by the loop's clock."""
        return self._loop.time() * 1000

    # Waking up

    def wake(self, queue: PartitionQueue) -> None:
        """A partition has something new: a batch, or a full one."""
        self._look_for_expired()
        if queue.node is None:
            self.place(queue)
        if queue.node is not None:
            self._lane(queue.node).event.set()
        else:
            self._cluster.request_refresh()
        self._do_chores()

    def wake_all(self) -> None:
        """Things have changed for all partitions."""
        for lane in self._lanes.values():
            lane.event.set()
        self._do_chores()

    def place(self, queue: PartitionQueue) -> None:
        """Find the partition's leader."""
        leader = self._cluster.info.leader(queue.target)
        self._accumulator.move(queue, None if leader is None else leader.node_id)

    def _cluster_changed(self, changes: Changes) -> None:
        for queue in self._accumulator.queues.values():
            self.place(queue)
            if not queue.idle and queue.node is not None:
                self._lane(queue.node).event.set()

    def _lane(self, node: int) -> _Lane:
        lane = self._lanes.get(node)
        if lane is None:
            lane = self._lanes[node] = _Lane(node)
            lane.task = self._loop.create_task(self._run(lane), name=f"kohort-produce-{node}")
            lane.task.add_done_callback(partial(self._ended, lane))
        return lane

    def _ended(self, lane: _Lane, task: asyncio.Task[None]) -> None:
        """A task that ends by itself is a mistake of ours: nobody shall wait for what it had to send."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("sending to broker %d failed", lane.node, exc_info=error)
        self._lanes.pop(lane.node, None)
        self._judge.drop_from(lane.node, ClientError(f"sending failed: {error!r}"))
        self._progressed()

    # Chores that a broker's task mustn't wait for

    def _do_chores(self) -> None:
        if self._chore is None and not self._closed and (self._state.pending or self._lacks_id()):
            self._chore = self._loop.create_task(self._chores(), name="kohort-producer-chores")

    def _lacks_id(self) -> bool:
        idle = self._state.failed or not self._settings.enable_idempotence or self._settings.transactional_id
        return not idle and self._state.identity is None

    async def _chores(self) -> None:
        try:
            while self._state.pending and not self._state.failed:
                await self._transactions.add_partitions()
            if self._lacks_id():
                await self._transactions.initialize()
        except (ClientError, KafkaError) as error:
            # Time is up, or the state has it already.
            self._state.abortable(error)
            if self._state.failed:
                self._judge.drop(self._state.error or error)
                self._progressed()
        finally:
            self._chore = None
            if not self._closed:
                self.wake_all()

    async def chores_done(self) -> None:
        """Wait for what was asked of coordinators on the side, be it answered well or not."""
        if self._chore is not None:
            await asyncio.wait({self._chore})

    # Sending

    async def _run(self, lane: _Lane) -> None:
        while True:
            lane.event.clear()
            timer: asyncio.TimerHandle | None = None
            next_at = await self._send_due(lane)
            if next_at is not None:
                timer = self._loop.call_at(next_at / 1000, lane.event.set)
            await lane.event.wait()
            if timer is not None:
                timer.cancel()

    async def _send_due(self, lane: _Lane) -> float | None:
        """Send all that is due, as far as the broker keeps up; when more is (ms)."""
        while lane.in_flight < self._settings.max_in_flight_requests_per_connection:
            if not self._accumulator.has_active(lane.node):
                return None
            try:
                connection = await self._cluster.connection(lane.node)
                lane.trouble = None
                before = self._accumulator.buffered
                due = self._accumulator.due(lane.node, self.now(), self._state, self._judge.may_send)
                if self._accumulator.buffered < before:
                    self._progressed()
                self._do_chores()
                if not due.batches:
                    return due.next_at
                self._send(lane, connection, due.batches)
                await connection.drained()
            except (AuthenticationError, UnsupportedError) as error:
                self._judge.drop_from(lane.node, error)
                self._progressed()
            except ClientError as error:
                # It is tried again at once: the cluster has the pauses. Meanwhile, the leader may be another.
                lane.trouble = error
                if not self._leads(lane.node):
                    return None
            # Others want to do something, too.
            await asyncio.sleep(0)
        return None

    def _leads(self, node: int) -> bool:
        """Whether the broker is still known; if it isn't, its partitions wait for news."""
        if node in self._cluster.info.brokers:
            return True
        self._cluster.request_refresh()
        return False

    def _send(self, lane: _Lane, connection: Connection, taken: Sequence[ProducerBatch]) -> None:
        settings, state = self._settings, self._state
        transactional = settings.transactional_id is not None
        batches = []
        for batch in taken:
            try:
                if batch.encoded is None:
                    encode(batch, settings)
                stamp(batch, transactional=transactional)
            except Exception as error:  # whatever is wrong with the user's records must not stop the others'
                self._judge.unsendable(batch, ClientError(f"{batch.target}: can't be encoded: {error}"))
            else:
                batches.append(batch)
        if not batches:
            return
        request, with_ids = produce_request(
            batches, self._cluster.info.topics,
            acks=settings.required_acks, timeout_ms=self._cluster.config.request_timeout_ms,
            transactional_id=settings.transactional_id,
        )  # fmt: skip
        most = _EXPLICIT if transactional and not state.implicit else None if with_ids else _BY_NAME
        try:
            version = connection.version(ProduceRequest, most)
            if settings.required_acks == 0:
                connection.tell(request, version=version)
                for batch in batches:
                    self._judge.sent_unacknowledged(batch)
                self._progressed()
                return
            answer = connection.send(request, ProduceResponse, version=version)
        except ConnectionLostError as error:
            self._unanswered(batches, error)
            return
        except Exception as error:
            for batch in batches:
                self._judge.unsendable(batch, error)
            self._progressed()
            return
        lane.in_flight += 1
        answer.add_done_callback(partial(self._answered, lane, batches, request))

    def _answered(
        self,
        lane: _Lane,
        batches: Sequence[ProducerBatch],
        request: ProduceRequest,
        answer: asyncio.Future[ProduceResponse],
    ) -> None:
        lane.in_flight -= 1
        error = ConnectionLostError("the request was given up") if answer.cancelled() else answer.exception()
        if isinstance(error, Exception):
            self._unanswered(batches, error)
        else:
            self._judge_all(batches, request, answer.result())
        self._progressed()
        if not self._closed:
            lane.event.set()

    def _judge_all(self, batches: Sequence[ProducerBatch], request: ProduceRequest, answer: ProduceResponse) -> None:
        now = self.now()
        brokers = endpoints(answer)
        moved = False
        for batch, said in answers_for(batches, request, answer):
            if self._judge.answered(batch, said, now) is Verdict.MOVED:
                moved = True
                log.debug("%s: %s", batch.target, batch.trouble)
                hint = None if said is None else said.current_leader
                if hint is not None and self._cluster.learn_leader(
                    batch.target, hint.leader_id, hint.leader_epoch, brokers.get(hint.leader_id)
                ):
                    # The right broker is known already: no need to wait.
                    self._accumulator.queues[batch.target].retry_at = now
        if moved:
            self._cluster.request_refresh()

    def _unanswered(self, batches: Sequence[ProducerBatch], error: Exception) -> None:
        now = self.now()
        for batch in batches:
            self._judge.unanswered(batch, error, now)
        self._cluster.request_refresh()

    # Time

    def _look_for_expired(self) -> None:
        if self._expiry is None and not self._closed:
            pause = min(max(self._settings.delivery_timeout_ms / 20, _LEAST_LOOK_MS), _MOST_LOOK_MS)
            self._expiry = self._loop.call_later(pause / 1000, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        before = self._accumulator.buffered
        self._judge.expire(self.now(), self._trouble_of)
        if self._accumulator.buffered < before:
            self._progressed()
        if self._accumulator.buffered:
            self._look_for_expired()

    def _trouble_of(self, batch: ProducerBatch) -> Exception | None:
        node = self._accumulator.queues[batch.target].node
        if node is None:
            code = self._cluster.info.errors.get(batch.target.topic, ErrorCode.LEADER_NOT_AVAILABLE)
            return KafkaError(code, f"{batch.target} has no leader")
        lane = self._lanes.get(node)
        return None if lane is None else lane.trouble

    async def close(self) -> None:
        """End all tasks; what is in flight isn't waited for."""
        self._closed = True
        self._stop_listening()
        if self._expiry is not None:
            self._expiry.cancel()
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if self._chore is not None:
            tasks.append(self._chore)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
