"""ReadShareGroupStateSummary: offsets and epochs without batches."""

from __future__ import annotations

import pytest

from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask
from tests.broker.handlers.share_state import summary


@pytest.mark.parametrize("version", [0, 1])
def test_a_state_that_was_not_initialized_has_no_offset(version: int, ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id

    (part,) = ask(summary(topic_id, 0), version).results[0].partitions

    assert (part.error_code, part.state_epoch, part.start_offset) == (ErrorCode.NONE, 0, -1)
    assert part.delivery_complete_count == -1
