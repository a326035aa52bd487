"""Sends batches: one task for each broker, requests pipelined; responses complete batches as they come."""

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
from kohort.client.producing.batch import ProducerBatch
from kohort.client.producing.batch_completer import BatchCompleter
from kohort.client.producing.encoding import encode, stamp
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.produce_errors import Verdict
from kohort.client.producing.produce_request import endpoints, produce_request, responses_by_batch
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_client import TransactionClient
from kohort.client.producing.transaction_manager import TransactionManager
from kohort.client.server_cluster_info import Changes
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.produce import ProduceRequest, ProduceResponse

log = logging.getLogger("kohort.client.producer")

_BEFORE_TRANSACTION_V2: Final = 11
"""The newest version of Produce that doesn't add partitions to transactions by itself."""

_BY_NAME: Final = 12
"""The newest version of Produce with topics by name."""

_MIN_EXPIRY_CHECK_MS: Final = 20.0
_MAX_EXPIRY_CHECK_MS: Final = 1000.0


class _BrokerSender:
    """The task that sends to one broker."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.wake = asyncio.Event()
        self.in_flight = 0
        self.task: asyncio.Task[None] | None = None
        self.last_error: Exception | None = None


class Sender:
    """The tasks that send, and the timers.

    Args:
        transactions: adds partitions to transactions.
        on_progress: called when batches are done: there may be room for more.
    """

    def __init__(
        self,
        cluster: Cluster,
        accumulator: Accumulator,
        manager: TransactionManager,
        settings: ProducerSettings,
        completer: BatchCompleter,
        transactions: TransactionClient,
        on_progress: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._manager = manager
        self._settings = settings
        self._completer = completer
        self._transactions = transactions
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._broker_senders: dict[int, _BrokerSender] = {}
        self._coordinator_task: asyncio.Task[None] | None = None
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._stop_listening = cluster.on_change(self._cluster_changed)

    def now(self) -> float:
        """Returns the loop's time in ms."""
        return self._loop.time() * 1000

    # Waking up

    def wake(self, queue: PartitionQueue) -> None:
        """A partition has a new batch, or a full one."""
        self._schedule_expiry()
        if queue.node is None:
            self.place(queue)
        if queue.node is not None:
            self._broker_sender(queue.node).wake.set()
        else:
            self._cluster.request_refresh()
        self._start_coordinator_requests()

    def wake_all(self) -> None:
        for broker in self._broker_senders.values():
            broker.wake.set()
        self._start_coordinator_requests()

    def place(self, queue: PartitionQueue) -> None:
        """Looks up the partition's leader."""
        leader = self._cluster.info.leader(queue.target)
        self._accumulator.move(queue, None if leader is None else leader.node_id)

    def _cluster_changed(self, changes: Changes) -> None:
        for queue in self._accumulator.queues.values():
            self.place(queue)
            if not queue.idle and queue.node is not None:
                self._broker_sender(queue.node).wake.set()

    def _broker_sender(self, node: int) -> _BrokerSender:
        broker = self._broker_senders.get(node)
        if broker is None:
            broker = self._broker_senders[node] = _BrokerSender(node)
            broker.task = self._loop.create_task(self._run(broker), name=f"kohort-produce-{node}")
            broker.task.add_done_callback(partial(self._ended, broker))
        return broker

    def _ended(self, broker: _BrokerSender, task: asyncio.Task[None]) -> None:
        """A task that ends by itself is a bug: its batches fail, so that nobody waits for them."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.error("sending to broker %d failed", broker.node, exc_info=error)
        self._broker_senders.pop(broker.node, None)
        self._completer.drop_from(broker.node, ClientError(f"sending failed: {error!r}"))
        self._on_progress()

    # Requests to coordinators, which a broker's task mustn't wait for

    def _start_coordinator_requests(self) -> None:
        if self._coordinator_task is None and not self._closed and (self._manager.pending or self._lacks_id()):
            self._coordinator_task = self._loop.create_task(self._coordinator_requests(), name="kohort-producer-chores")

    def _lacks_id(self) -> bool:
        idle = self._manager.failed or not self._settings.enable_idempotence or self._settings.transactional_id
        return not idle and self._manager.identity is None

    async def _coordinator_requests(self) -> None:
        try:
            while self._manager.pending and not self._manager.failed:
                await self._transactions.add_partitions()
            if self._lacks_id():
                await self._transactions.initialize()
        except (ClientError, KafkaError) as error:
            # The time is over; or the manager has the error already.
            self._manager.abortable(error)
            if self._manager.failed:
                self._completer.drop(self._manager.error or error)
                self._on_progress()
        finally:
            self._coordinator_task = None
            if not self._closed:
                self.wake_all()

    async def coordinator_requests_done(self) -> None:
        """Waits until requests to coordinators in the background have ended, well or not."""
        if self._coordinator_task is not None:
            await asyncio.wait({self._coordinator_task})

    # Sending

    async def _run(self, broker: _BrokerSender) -> None:
        while True:
            broker.wake.clear()
            timer: asyncio.TimerHandle | None = None
            next_at = await self._send_due(broker)
            if next_at is not None:
                timer = self._loop.call_at(next_at / 1000, broker.wake.set)
            await broker.wake.wait()
            if timer is not None:
                timer.cancel()

    async def _send_due(self, broker: _BrokerSender) -> float | None:
        """Sends all that is due, as far as the broker keeps up; returns when more is due (ms)."""
        while broker.in_flight < self._settings.max_in_flight_requests_per_connection:
            if not self._accumulator.has_active(broker.node):
                return None
            try:
                connection = await self._cluster.connection(broker.node)
                broker.last_error = None
                before = self._accumulator.buffered
                due = self._accumulator.due(broker.node, self.now(), self._manager, self._completer.may_send)
                if self._accumulator.buffered < before:
                    self._on_progress()
                self._start_coordinator_requests()
                if not due.batches:
                    return due.next_at
                self._send(broker, connection, due.batches)
                await connection.drained()
            except (AuthenticationError, UnsupportedError) as error:
                self._completer.drop_from(broker.node, error)
                self._on_progress()
            except ClientError as error:
                # Retried at once: the cluster backs off. Meanwhile the leader may change.
                broker.last_error = error
                if not self._knows_broker(broker.node):
                    return None
            # Lets other tasks run.
            await asyncio.sleep(0)
        return None

    def _knows_broker(self, node: int) -> bool:
        """Whether metadata still has the broker; if not, its partitions wait for a metadata refresh."""
        if node in self._cluster.info.brokers:
            return True
        self._cluster.request_refresh()
        return False

    def _send(self, broker: _BrokerSender, connection: Connection, due: Sequence[ProducerBatch]) -> None:
        settings, manager = self._settings, self._manager
        transactional = settings.transactional_id is not None
        batches = []
        for batch in due:
            try:
                if batch.encoded is None:
                    encode(batch, settings)
                stamp(batch, transactional=transactional)
            except Exception as error:  # bad records must not stop other batches
                self._completer.unsendable(batch, ClientError(f"{batch.target}: can't be encoded: {error}"))
            else:
                batches.append(batch)
        if not batches:
            return
        request, with_ids = produce_request(
            batches, self._cluster.info.topics,
            acks=settings.required_acks, timeout_ms=self._cluster.config.request_timeout_ms,
            transactional_id=settings.transactional_id,
        )  # fmt: skip
        most = (
            _BEFORE_TRANSACTION_V2 if transactional and not manager.transaction_v2 else None if with_ids else _BY_NAME
        )
        try:
            version = connection.version(ProduceRequest, most)
            if settings.required_acks == 0:
                connection.tell(request, version=version)
                for batch in batches:
                    self._completer.sent_unacknowledged(batch)
                self._on_progress()
                return
            answer = connection.send(request, ProduceResponse, version=version)
        except ConnectionLostError as error:
            self._request_failed(batches, error)
            return
        except Exception as error:
            for batch in batches:
                self._completer.unsendable(batch, error)
            self._on_progress()
            return
        broker.in_flight += 1
        answer.add_done_callback(partial(self._response_received, broker, batches, request))

    def _response_received(
        self,
        broker: _BrokerSender,
        batches: Sequence[ProducerBatch],
        request: ProduceRequest,
        answer: asyncio.Future[ProduceResponse],
    ) -> None:
        broker.in_flight -= 1
        error = ConnectionLostError("the request was given up") if answer.cancelled() else answer.exception()
        if isinstance(error, Exception):
            self._request_failed(batches, error)
        else:
            self._complete_all(batches, request, answer.result())
        self._on_progress()
        if not self._closed:
            broker.wake.set()

    def _complete_all(
        self, batches: Sequence[ProducerBatch], request: ProduceRequest, response: ProduceResponse
    ) -> None:
        now = self.now()
        brokers = endpoints(response)
        leader_moved = False
        for batch, partition_response in responses_by_batch(batches, request, response):
            if self._completer.handle_response(batch, partition_response, now) is Verdict.LEADER_MOVED:
                leader_moved = True
                log.debug("%s: %s", batch.target, batch.last_error)
                hint = None if partition_response is None else partition_response.current_leader
                if hint is not None and self._cluster.learn_leader(
                    batch.target, hint.leader_id, hint.leader_epoch, brokers.get(hint.leader_id)
                ):
                    # The new leader is known already: no backoff.
                    self._accumulator.queues[batch.target].retry_at = now
        if leader_moved:
            self._cluster.request_refresh()

    def _request_failed(self, batches: Sequence[ProducerBatch], error: Exception) -> None:
        now = self.now()
        for batch in batches:
            self._completer.handle_no_response(batch, error, now)
        self._cluster.request_refresh()

    # Delivery timeout

    def _schedule_expiry(self) -> None:
        if self._expiry_timer is None and not self._closed:
            pause = min(max(self._settings.delivery_timeout_ms / 20, _MIN_EXPIRY_CHECK_MS), _MAX_EXPIRY_CHECK_MS)
            self._expiry_timer = self._loop.call_later(pause / 1000, self._expire)

    def _expire(self) -> None:
        self._expiry_timer = None
        before = self._accumulator.buffered
        self._completer.expire(self.now(), self._reason_unsent)
        if self._accumulator.buffered < before:
            self._on_progress()
        if self._accumulator.buffered:
            self._schedule_expiry()

    def _reason_unsent(self, batch: ProducerBatch) -> Exception | None:
        node = self._accumulator.queues[batch.target].node
        if node is None:
            code = self._cluster.info.errors.get(batch.target.topic, ErrorCode.LEADER_NOT_AVAILABLE)
            return KafkaError(code, f"{batch.target} has no leader")
        broker = self._broker_senders.get(node)
        return None if broker is None else broker.last_error

    async def close(self) -> None:
        """Ends all tasks, without waiting for requests in flight."""
        self._closed = True
        self._stop_listening()
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
        tasks = [broker.task for broker in self._broker_senders.values() if broker.task is not None]
        if self._coordinator_task is not None:
            tasks.append(self._coordinator_task)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
