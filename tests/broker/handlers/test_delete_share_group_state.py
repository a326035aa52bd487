"""DeleteShareGroupState: a state is deleted by request, or with its topic."""

from __future__ import annotations

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.share_state import codes, delete, initialize


def test_a_topics_states_go_with_it(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    ask(initialize(topic_id, 0))
    assert sum(map(len, broker.share_state.active())) == 1

    broker.topics.delete("there")

    assert sum(map(len, broker.share_state.active())) == 0


def test_a_state_that_is_not_there_counts_as_deleted(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id

    assert codes(ask(delete(topic_id, 0))) == [(0, ErrorCode.NONE)]
