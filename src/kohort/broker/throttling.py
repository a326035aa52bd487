"""Client quotas are held: what clients do is counted, and who does too much waits (KIP-13, 124, 219, 599, 612).

An answer goes out at once and says how long the client should wait; its connection isn't read from for that time.
Without quotas nothing is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any, Final

from kohort.broker.client_quotas import ClientQuotas, EntityFilter
from kohort.broker.config import Settings
from kohort.broker.session import Session
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.fetch import FetchRequest
from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kohort.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kohort.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kohort.security.addresses import one_spelling
from kohort.security.quotas.kept import Kept
from kohort.security.quotas.limits import USER, Entity, Key, Limits
from kohort.security.quotas.rate import SECOND_MS
from kohort.security.quotas.throttle import Throttle
from kohort.security.quotas.token_bucket import TokenBucket

_PRODUCE: Final = ProduceRequest.__message__.key
_FETCH: Final = FetchRequest.__message__.key
_SHARE_FETCH: Final = ShareFetchRequest.__message__.key
_EXEMPT: Final = frozenset(
    each.__message__.key for each in (SaslHandshakeRequest, SaslAuthenticateRequest, WriteTxnMarkersRequest)
)
"""Who isn't known yet has no quota, and brokers have none among themselves."""

_ALL: Final = EntityFilter({})

PRODUCER: Final = "producer_byte_rate"
CONSUMER: Final = "consumer_byte_rate"
REQUEST: Final = "request_percentage"
MUTATION: Final = "controller_mutation_rate"
CONNECTION: Final = "connection_creation_rate"


class Throttling:
    """Counts what clients do against their quotas.

    Args:
        now: ms of a clock that doesn't go back.

    Attributes:
        throttled: requests and connections that had to wait, by quota.
        throttled_ms: how long, in all.
    """

    def __init__(self, quotas: ClientQuotas, settings: Settings, now: Callable[[], int]) -> None:
        self._quotas = quotas
        self._version = -1
        self._now = now
        samples, sample_ms = settings.int("quota.window.num"), settings.int("quota.window.size.seconds") * SECOND_MS
        self._window_s = (samples - 1) * sample_ms / SECOND_MS
        self._produce, self._fetch = (Throttle(Limits({}), samples, sample_ms) for _ in range(2))
        self._request, self._connect = (Throttle(Limits({}), samples, sample_ms, most_ms=sample_ms) for _ in range(2))
        self._mutations = Limits({})
        self._buckets: Kept[Key, TokenBucket] = Kept()
        self._bucket_s = settings.int("controller.quota.window.num") * settings.int(
            "controller.quota.window.size.seconds"
        )
        self._active = False
        self.throttled: Counter[str] = Counter()
        self.throttled_ms: Counter[str] = Counter()

    @property
    def active(self) -> bool:
        """Whether there are quotas of users or clients."""
        if self._version != self._quotas.version:
            self._read()
        return self._active

    def charge(self, api: int, session: Session, client_id: str, response: Any, received: int, seconds: float) -> Any:
        """Counts a request, and sets how long its client waits: in the session and in the response that it returns.

        That is a copy where the client has to wait: coordinators keep responses, and give them out again.

        Args:
            api: its key.
            response: None if there is none.
            received: bytes of the request.
            seconds: of work for it.
        """
        if api in _EXEMPT or not session.known:
            return response
        now, user = self._now(), _user(session)
        waits = {CONSUMER if api == _FETCH else MUTATION: session.throttle_ms}
        if api == _PRODUCE:
            waits[PRODUCER] = self._produce.record(user, client_id, received, now)
        elif api == _SHARE_FETCH and response is not None:
            waits[CONSUMER] = self._fetch.record(user, client_id, _record_bytes(response), now)
        if response is not None:
            waits[REQUEST] = self._request.record(user, client_id, seconds * 100, now)
        quota = max(waits, key=waits.__getitem__)
        session.throttle_ms = wait = waits[quota]
        if wait:
            self._count(quota, wait)
            if response is not None and "throttle_time_ms" in response.__struct_fields__:
                response = copy(response)
                response.throttle_time_ms = wait
        return response

    def fetch_bytes(self, session: Session, client_id: str) -> int | None:
        """The most that a fetch may bring without a wait, if nothing was fetched lately; None for any."""
        limit = self._fetch.limits.of(_user(session), client_id) if self.active else None
        return None if limit is None else max(1, int(limit.bound * self._window_s))

    def fetch(self, session: Session, client_id: str, size: int) -> bool:
        """Counts bytes of records that would be sent; returns whether they are too many, and aren't to be sent.

        A batch that is larger than what a window takes is sent when nothing else was, and waited for afterwards; in
        Kafka its client is stuck.
        """
        most = self.fetch_bytes(session, client_id)
        if most is None:
            return False
        user, now = _user(session), self._now()
        wait = self._fetch.record(user, client_id, min(size, most), now, take_back=True)
        if not wait and size > most:
            session.throttle_ms = max(session.throttle_ms, self._fetch.record(user, client_id, size - most, now))
        session.throttle_ms = max(session.throttle_ms, wait)
        return wait > 0

    def mutate(self, session: Session, client_id: str, partitions: int, *, strict: bool) -> None:
        """Counts partitions that are created or deleted.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, if `strict` and too many were before.
        """
        limit = self._mutations.of(_user(session), client_id) if self.active else None
        if limit is None:
            return
        now = self._now()
        bucket = self._buckets.of(limit.key, now, lambda: TokenBucket(limit.bound, self._bucket_s, now))
        if bucket.rate != limit.bound:
            bucket.change(limit.bound, now)
        if strict and (wait := bucket.throttle_ms(now)):
            session.throttle_ms = max(session.throttle_ms, wait)
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        bucket.take(partitions, now)
        if not strict:
            session.throttle_ms = max(session.throttle_ms, bucket.throttle_ms(now))

    def connect(self, host: str) -> int:
        """Counts a connection from an address; if there are too many, returns after how many ms it is closed."""
        if self._version != self._quotas.version:
            self._read()
        if not self._connect.limits:
            return 0
        wait = self._connect.record(one_spelling(host), "", 1, self._now(), take_back=True)
        if wait:
            self._count(CONNECTION, wait)
        return wait

    def _count(self, quota: str, wait: int) -> None:
        self.throttled[quota] += 1
        self.throttled_ms[quota] += wait

    def _read(self) -> None:
        """Takes up quotas that have changed: O(quotas)."""
        self._version = self._quotas.version
        found: dict[str, dict[Entity, float]] = {}
        for entity, values in self._quotas.matching(_ALL):
            for name, value in values.items():
                found.setdefault(name, {})[entity] = value
        self._produce.limits = Limits(found.get(PRODUCER, {}))
        self._fetch.limits = Limits(found.get(CONSUMER, {}))
        self._request.limits = Limits(found.get(REQUEST, {}))
        self._mutations = Limits(found.get(MUTATION, {}))
        # An address is as a user who has no client ids.
        self._connect.limits = Limits(
            {
                frozenset({(USER, None if name is None else one_spelling(name))}): value
                for entity, value in found.get(CONNECTION, {}).items()
                for _, name in entity
            }
        )
        self._active = any((self._produce.limits, self._fetch.limits, self._request.limits, self._mutations))


def _user(session: Session) -> str:
    return session.principal.partition(":")[2]


def _record_bytes(response: ShareFetchResponse) -> int:
    return sum(
        len(partition.records) for topic in response.responses for partition in topic.partitions if partition.records
    )
