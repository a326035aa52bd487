"""A name that a request repeats is answered once, or the response could be many times as large as the request."""

from __future__ import annotations

import pytest

from kohort.protocol.message import Request
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.describe_producers import DescribeProducersRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from tests.broker.handlers.served import Run, answer_of


@pytest.mark.parametrize(
    ("request_", "version", "answers"),
    [
        (DescribeGroupsRequest(groups=("g",) * 9), 5, "groups"),
        (StreamsGroupDescribeRequest(group_ids=("g",) * 9), 0, "groups"),
        (DescribeTransactionsRequest(transactional_ids=("x",) * 9), 0, "transaction_states"),
        (DescribeProducersRequest(topics=[DescribeProducersRequest.Topic(name="t")] * 9), 0, "topics"),
        (
            DescribeConfigsRequest(resources=[DescribeConfigsRequest.Resource(resource_type=2, resource_name="t")] * 9),
            4,
            "results",
        ),
        (OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=None)] * 9), 9, "groups"),
        (MetadataRequest(topics=[MetadataRequest.Topic(name="t")] * 9), 9, "topics"),
    ],
    ids=lambda value: value.__message__.api if isinstance(value, Request) else "",
)
def test_what_is_described_is_described_once(with_server: Run, request_: Request, version: int, answers: str) -> None:
    assert len(getattr(answer_of(with_server, request_, version), answers)) == 1
