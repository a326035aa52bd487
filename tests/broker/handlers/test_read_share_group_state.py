"""ReadShareGroupState: the leader of a partition reads a state, and fences its predecessors."""

from __future__ import annotations

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.share_state import codes, initialize, read, write


def test_an_older_leader_is_fenced(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    ask(initialize(topic_id, 0, start_offset=4))

    (part,) = ask(read(topic_id, 0, leader_epoch=2)).results[0].partitions
    assert (part.error_code, part.start_offset) == (ErrorCode.NONE, 4)

    assert codes(ask(read(topic_id, 0, leader_epoch=1))) == [(0, ErrorCode.FENCED_LEADER_EPOCH)]
    assert codes(ask(write(topic_id, 0))) == [(0, ErrorCode.FENCED_LEADER_EPOCH)]
