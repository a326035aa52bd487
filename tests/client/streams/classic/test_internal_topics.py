"""Internal topics, as the leader of a classic streams group has them created by brokers of any age."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.client.administration.topics import NewTopic
from kohort.client.errors import PartialFailureError, RequestTimeoutError
from kohort.client.streams_internal_topics import InternalTopics
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.streams.topology import InternalTopic
from tests.waiting import run

FAR = {"message.timestamp.after.max.ms": "9"}


class Brokers:
    """Brokers that know some settings, and have some topics."""

    def __init__(self, *known: str, existing: tuple[str, ...] = ()) -> None:
        self.known, self.existing = set(known), existing
        self.created: dict[str, Mapping[str, str]] = {}
        self.reachable = True
        self.now = 5_000
        self.takes_ms = 0
        self.timeouts_ms: list[int] = []

    async def create(self, *topics: NewTopic, timeout_ms: int) -> None:
        assert topics
        assert timeout_ms > 0
        self.timeouts_ms.append(timeout_ms)
        self.now += self.takes_ms
        if not self.reachable:
            raise RequestTimeoutError("nobody answers")
        errors = {topic.name: code for topic in topics if (code := self._error(topic)) is not None}
        self.created |= {topic.name: topic.configs for topic in topics if topic.name not in errors}
        if errors:
            raise PartialFailureError({}, {name: KafkaError(code) for name, code in errors.items()})

    def _error(self, topic: NewTopic) -> ErrorCode | None:
        if topic.name in self.existing:
            return ErrorCode.TOPIC_ALREADY_EXISTS
        return None if topic.configs.keys() <= self.known else ErrorCode.INVALID_CONFIG


def create(brokers: Brokers, *topics: InternalTopic) -> set[str]:
    return run(InternalTopics(brokers, "a member").create(topics, brokers.now + 1_000, lambda: brokers.now))


def test_brokers_before_kafka_3_6_get_topics_without_the_limit_that_they_dont_know() -> None:
    brokers = Brokers("retention.ms")
    topics = (
        InternalTopic("a", 1, configs=FAR | {"retention.ms": "-1"}),
        InternalTopic("b", 1, configs={"retention.ms": "1"}),
    )
    assert create(brokers, *topics) == set()
    assert brokers.created == {"a": {"retention.ms": "-1"}, "b": {"retention.ms": "1"}}


def test_both_attempts_share_the_time() -> None:
    brokers = Brokers()
    brokers.takes_ms = 700
    assert create(brokers, InternalTopic("a", 1, configs=FAR)) == set()
    assert brokers.timeouts_ms == [1_000, 300]


def test_newer_brokers_get_all_settings() -> None:
    brokers = Brokers(*FAR)
    assert create(brokers, InternalTopic("a", 1, configs=FAR)) == set()
    assert brokers.created == {"a": FAR}


def test_a_setting_that_matters_isnt_left_out() -> None:
    brokers = Brokers(*FAR)
    assert create(brokers, InternalTopic("a", 1, configs=FAR | {"retenton.ms": "1"}), InternalTopic("b", 1)) == {"a"}
    assert brokers.created == {"b": {}}


def test_a_topic_that_exists_counts_as_created() -> None:
    assert create(Brokers(existing=("a",)), InternalTopic("a", 1)) == set()


def test_nothing_is_created_when_no_broker_answers() -> None:
    brokers = Brokers(*FAR)
    brokers.reachable = False
    assert create(brokers, InternalTopic("a", 1), InternalTopic("b", 1)) == {"a", "b"}
