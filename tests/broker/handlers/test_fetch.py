"""Fetch: records, and fetches that wait."""

from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.fetch import FetchRequest
from tests.broker.handlers.served import Run, ask


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, ErrorCode.NONE)])
def test_topics_of_zstd_are_for_clients_that_know_it(with_server: Run, version: int, code: ErrorCode) -> None:
    part = FetchRequest.Topic.Partition(partition=0)
    request = FetchRequest(session_epoch=-1, topics=[FetchRequest.Topic(topic="t", partitions=[part])])
    response = ask(with_server, request, version, "compression.type=zstd")
    assert response.responses[0].partitions[0].error_code == code
