"""What instances send each other for queries, byte by byte: those of the next version have to read it."""

from __future__ import annotations

import msgspec

from kohort.spark.queries.peer_messages import (
    MissingPartition,
    PeerQuery,
    QueryResult,
    StoreCopy,
    decode_query,
    decode_result,
    encode,
)
from kohort.spark.queries.result_pages import Row


def test_a_query_as_it_is_sent() -> None:
    query = PeerQuery(store="delays", partitions=(0, 2), start=b"a", end=b"z", suffix=b"x", limit=10)
    assert msgspec.msgpack.decode(encode(query)) == {
        "store": "delays", "partitions": [0, 2], "stale": False, "key": None,
        "start": b"a", "end": b"z", "suffix": b"x", "limit": 10,
    }  # fmt: skip
    assert decode_query(encode(query)) == query


def test_a_result_as_it_is_sent() -> None:
    copy, missing = StoreCopy(0, "active", 7, "one:80"), MissingPartition(2, "it is moving", "two:80", ("three:80",))
    result = QueryResult([Row(b"k", b"v", 0)], b"k", [copy], [missing])
    assert msgspec.msgpack.decode(encode(result)) == {
        "rows": [[b"k", b"v", 0]],
        "until": b"k",
        "copies": [{"partition": 0, "role": "active", "lag": 7, "instance": "one:80"}],
        "missing": [{"partition": 2, "reason": "it is moving", "ask": "two:80", "copies": ["three:80"]}],
    }
    assert decode_result(encode(result)) == result
