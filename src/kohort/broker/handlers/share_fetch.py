"""ShareFetch: takes a share group member's acknowledgements, and gives it records, or waits for some."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from kohort.broker.context import Context
from kohort.broker.handlers import ONE_STEP, Served
from kohort.broker.reply import Reply
from kohort.broker.share.acknowledging import Outcomes, acknowledge
from kohort.broker.share.fetching import FetchedPartition, ShareFetch, ShareFetchLimits
from kohort.broker.share.sessions import FINAL, INITIAL, PartitionKey, ShareSession
from kohort.broker.share_requests import ELSEWHERE, batches_of, check, leader_epoch, lock_timeout_ms, partition_errors
from kohort.coordinator.purgatory import DelayedOperation
from kohort.coordinator.share_partition import AcquireMode
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

SERVED: Final = Served(ShareFetchRequest, versions=(1, 2), returns_records=True, max_items=ONE_STEP)

_MODES: Final = frozenset(mode.value for mode in AcquireMode)

_Topic = ShareFetchResponse.TopicResponse
_Partition = ShareFetchResponse.TopicResponse.Partition


def handle(request: ShareFetchRequest, context: Context) -> ShareFetchResponse | Reply[ShareFetchResponse]:
    """Answers when the acknowledgements are persisted, and there are records, or the time to wait for them is over."""
    try:
        group_id, member_id = check(request, context)
        _check_renewal(request)
        session = _session(request, context, group_id, member_id)
    except KafkaError as error:
        response = ShareFetchResponse(error_code=error.code)
        if error.code is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or request.max_wait_ms <= 0:
            return response
        return _Wait.for_room(request.max_wait_ms, response, context)
    return _Fetch(request, context, group_id, member_id, session).run()


def _check_renewal(request: ShareFetchRequest) -> None:
    """A fetch that renews locks doesn't wait and brings no records: the locks could expire meanwhile (KIP-1222).

    Raises:
        KafkaError: INVALID_REQUEST: it asks for records; or its acquire mode is unknown.
    """
    if request.share_acquire_mode not in _MODES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there is no share acquire mode {request.share_acquire_mode}")
    if request.is_renew_ack and (request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "max_bytes, min_bytes, max_records and max_wait_ms must be 0 to renew locks"
        )


def _session(request: ShareFetchRequest, context: Context, group_id: str, member_id: str) -> ShareSession:
    """The session that the request opens, goes on with, or is going to end.

    Raises:
        KafkaError: see `kohort.broker.share.sessions`; INVALID_REQUEST for acknowledgements with the initial epoch.
    """
    sessions = context.broker.shares.sessions
    if request.share_session_epoch == FINAL:
        return sessions.get(group_id, member_id)
    wanted: Iterable[PartitionKey] = (key for key, _ in batches_of(request.topics))
    if request.share_session_epoch == INITIAL:
        if any(batches for _, batches in batches_of(request.topics)):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a session doesn't begin with acknowledgements")
        return sessions.open(group_id, member_id, context.session, wanted)
    forgotten = ((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions)
    return sessions.advance(group_id, member_id, request.share_session_epoch, wanted, forgotten)


class _Fetch:
    """A request in progress: its acknowledgements, and its fetch."""

    def __init__(
        self, request: ShareFetchRequest, context: Context, group_id: str, member_id: str, session: ShareSession
    ) -> None:
        self.request = request
        self.context = context
        self.group_id = group_id
        self.member_id = member_id
        self.session = session
        self.epoch = session.epoch
        self._outcomes: Outcomes | None = None
        self._fetched: list[FetchedPartition] | None = None
        self._reply: Reply[ShareFetchResponse] = Reply()

    def run(self) -> Reply[ShareFetchResponse]:
        request = self.request
        error_of = partition_errors(self.context)
        if any(batches for _, batches in batches_of(request.topics)):
            acknowledge(
                self.context.broker.shares,
                self.group_id,
                self.member_id,
                batches_of(request.topics),
                error_of=error_of,
                version=self.context.version,
                is_renew_ack=request.is_renew_ack,
            ).then(self._acknowledged)
        else:
            self._outcomes = {}
        if request.share_session_epoch == FINAL or request.is_renew_ack:
            self._read([])
            return self._reply
        failed: list[FetchedPartition] = []
        readable: list[PartitionKey] = []
        for key in self.session.rotated(request.share_session_epoch):
            error = error_of(key)
            if error:
                failed.append(FetchedPartition(key, error))
            else:
                readable.append(key)
        if not readable or request.max_records <= 0 or request.max_bytes <= 0:
            self._read(failed)
        else:
            self._fetch(readable, failed)
        return self._reply

    def _fetch(self, readable: list[PartitionKey], failed: list[FetchedPartition]) -> None:
        broker, request = self.context.broker, self.request
        hosted = []
        for topic_id, index in readable:
            topic = broker.topics.by_id(topic_id)
            assert topic is not None
            hosted.append(broker.shares.load(self.group_id, topic.partitions[index]))
        quota = broker.throttling.fetch_bytes(self.context.session, self.context.client_id)
        max_bytes = min(request.max_bytes, broker.fetch_max_bytes)
        if quota is not None:
            max_bytes = min(max_bytes, quota)
        fetch = ShareFetch(
            self.context.now + max(request.max_wait_ms, 0),
            self.member_id,
            hosted,
            ShareFetchLimits(
                min_bytes=min(request.min_bytes, max_bytes),
                max_bytes=max_bytes,
                max_records=request.max_records,
                batch_size=max(request.batch_size, 1),
                mode=AcquireMode(request.share_acquire_mode),
            ),
            wanted=lambda: broker.shares.sessions.is_open(self.session),
        )
        fetch.reply.then(lambda fetched: self._read([*failed, *fetched]))
        if request.max_wait_ms <= 0:
            fetch.force_complete()
        elif not broker.shares.fetches.try_complete_else_watch(fetch, fetch.keys):
            self.context.session.on_close = fetch.abandon

    def _acknowledged(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._maybe_answer()

    def _read(self, fetched: list[FetchedPartition]) -> None:
        self._fetched = fetched
        self.context.session.on_close = None
        self._maybe_answer()

    def _maybe_answer(self) -> None:
        if self._outcomes is None or self._fetched is None:
            return
        shares = self.context.broker.shares
        if self.request.share_session_epoch == FINAL:
            response = self._response(self._fetched, self._outcomes)
            shares.close(self.session)
        elif self.session.epoch != self.epoch:  # another request of the session came in between
            response = ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        else:
            response = self._response(self._fetched, self._outcomes)
        self._reply(response)

    def _response(self, fetched: list[FetchedPartition], outcomes: Outcomes) -> ShareFetchResponse:
        """The partitions that were read, in a session those with news, and what came of acknowledgements."""
        response = ShareFetchResponse(acquisition_lock_timeout_ms=lock_timeout_ms(self.context, self.group_id))
        topics: dict[UUID, _Topic] = {}
        counters = self.context.broker.shares.counters
        for result in fetched:
            counters.failed_fetches += bool(result.error)
            counters.acquired += sum(last - first + 1 for first, last, _ in result.acquired)
            news = self.session.must_respond(result.key, has_records=bool(result.records), failed=bool(result.error))
            if not news and result.key not in outcomes and self.request.share_session_epoch != INITIAL:
                continue
            partition = _partition(topics, response, result.key)
            partition.error_code = result.error
            partition.records = result.records
            partition.acquired_records = [
                _Partition.AcquiredRecord(first_offset=first, last_offset=last, delivery_count=delivery_count)
                for first, last, delivery_count in result.acquired
            ]
            partition.acknowledge_error_code = outcomes.pop(result.key, ErrorCode.NONE)
            if result.error in ELSEWHERE:
                self._tell_leader(response, partition, result.key)
        for key, code in outcomes.items():
            _partition(topics, response, key).acknowledge_error_code = code
        return response

    def _tell_leader(self, response: ShareFetchResponse, partition: _Partition, key: PartitionKey) -> None:
        broker = self.context.broker
        partition.current_leader.leader_id = broker.node_id
        partition.current_leader.leader_epoch = leader_epoch(self.context, key)
        if not response.node_endpoints:
            host, port = self.context.session.advertised
            response.node_endpoints.append(
                ShareFetchResponse.NodeEndpoint(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
            )


def _partition(topics: dict[UUID, _Topic], response: ShareFetchResponse, key: PartitionKey) -> _Partition:
    """A partition's part of a response, added to it."""
    topic = topics.get(key[0])
    if topic is None:
        topic = topics[key[0]] = _Topic(topic_id=key[0])
        response.responses.append(topic)
    partition = _Partition(partition_index=key[1], records=b"")
    topic.partitions.append(partition)
    return partition


class _Wait(DelayedOperation):
    """Answers at its deadline, so that a member without room for its session doesn't ask all the time."""

    def __init__(self, deadline: int, response: ShareFetchResponse, context: Context) -> None:
        super().__init__(deadline)
        self.reply: Reply[ShareFetchResponse] = Reply()
        self._response = response
        self._context = context

    @classmethod
    def for_room(cls, wait_ms: int, response: ShareFetchResponse, context: Context) -> Reply[ShareFetchResponse]:
        waiting = cls(context.now + wait_ms, response, context)
        context.session.on_close = waiting.force_complete
        context.broker.shares.fetches.try_complete_else_watch(waiting, (waiting,))
        return waiting.reply

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        self._context.session.on_close = None
        self.reply(self._response)
