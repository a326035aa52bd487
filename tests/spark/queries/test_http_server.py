"""Two instances over HTTP: which of them answers, and what happens while tasks move."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import zlib
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest

from kohort.client.streams.events import EndpointPartitions
from kohort.client.types import TopicPartition
from kohort.spark.queries.peer_messages import MissingPartition, QueryResult, StoreCopy, encode
from kohort.spark.queries.queryable import StoreRole
from kohort.spark.queries.result_pages import Row, merge_rows, scan_rows
from kohort.streams.endpoint import Endpoint
from tests.spark.queries.fakes import PARTITIONS, Instances, MemoryStore, partition_of, window_key

JFK = partition_of("JFK")
VALUE = b'{"n":12,"mean":3.5,"state":{"n":12,"mean.sum":"42.0"}}'
PATH = "/stores/delays/JFK@2013-01-01T05"


def http_response(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def with_query_servers(test: Callable[[Instances], Awaitable[None]], count: int = 2, timeout_ms: int = 10_000) -> None:
    async def main() -> None:
        async with Instances(count, timeout_ms) as instances:
            await test(instances)

    asyncio.run(main())


def test_the_owner_answers() -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 0))
        two.fakes[0].opens("delays", JFK, {window_key("JFK"): VALUE})
        reply = await two.get(PATH)
        assert reply.status == 200
        assert reply.json == {
            "store": "delays",
            "partition": JFK,
            "instance": f"127.0.0.1:{two.servers[0].port}",
            "role": "active",
            "lag": 0,
            "key": {"window": "2013-01-01T05:00:00.000Z", "origin": "JFK"},
            "value": {"n": 12, "mean": 3.5},
        }
        assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
        assert (await two.get(PATH + "?state=true")).json["value"]["state"] == {"n": 12, "mean.sum": "42.0"}
        gone = await two.get("/stores/delays/JFK@2013-01-01T06")
        assert gone.status == 404
        assert "has no key" in gone.json["message"]

    with_query_servers(test)


def test_other_instances_forward_to_the_owner() -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 1))
        two.fakes[1].opens("delays", JFK, {window_key("JFK"): VALUE})
        reply = await two.get(PATH, 0)
        assert (reply.status, reply.json["instance"]) == (200, f"127.0.0.1:{two.servers[1].port}")
        assert (await two.get("/stores/delays/JFK@2013-01-01T06", 0)).status == 404

    with_query_servers(test)


def test_a_key_whose_partition_isnt_certain_is_found_in_any() -> None:
    async def test(two: Instances) -> None:
        two.own("airlines", {0: 0, 1: 1, 2: 0, 3: 1})
        for partition in range(PARTITIONS):
            two.fakes[partition % 2].opens("airlines", partition, {f"U{partition}".encode(): b'{"name":"x"}'})
        for partition in range(PARTITIONS):
            reply = await two.get(f"/stores/airlines/U{partition}")
            assert (reply.json["partition"], reply.json["key"]) == (partition, f"U{partition}")
        assert (await two.get("/stores/airlines/U9")).status == 404
        two.fakes[1].opened.clear()  # whether it has the key is unknown
        assert (await two.get("/stores/airlines/U9")).status == 503
        assert (await two.get("/stores/airlines/U0")).status == 200

    with_query_servers(test)


def test_a_key_is_in_the_partition_of_its_topics_partitioner() -> None:
    async def test(two: Instances) -> None:
        two.own("tails", dict.fromkeys(range(PARTITIONS), 0))
        for number in range(20):
            tail = b"N%d" % number
            two.fakes[0].opened.clear()
            for partition in range(PARTITIONS):
                two.fakes[0].opens("tails", partition, {tail: b"{}"})
            reply = await two.get(f"/stores/tails/{tail.decode()}")
            assert reply.json["partition"] == zlib.crc32(tail) % PARTITIONS

    with_query_servers(test)


def test_every_instance_has_a_global_table() -> None:
    async def test(two: Instances) -> None:
        loading = await two.get("/stores/planes/N1")
        assert loading.status == 503
        assert loading.json["missing"][0] | {"ask": None} == {
            "partition": None, "reason": "the table is being loaded", "ask": None, "copies": [],
        }  # fmt: skip
        for fake in two.fakes:
            fake.opens("planes", None, {b"N1": b'{"seats":5}', b"N2": b"not JSON", b"\xff": b"{}"}, StoreRole.GLOBAL)
        reply = (await two.get("/stores/planes/N1", 1)).json
        assert (reply["partition"], reply["role"], reply["value"]) == (None, "global", {"seats": 5})
        assert [row["value"] for row in (await two.get("/stores/planes")).json["rows"]] == [
            {"seats": 5}, "not JSON", {},
        ]  # fmt: skip
        assert (await two.get("/stores/planes/%FF")).status == 200

    with_query_servers(test)


# While tasks move -----------------------------------------------------------------------------------------------------


def test_a_task_that_moved_meanwhile() -> None:
    """The instance that was asked doesn't have the task any more: the response names the one that has."""

    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 1))
        third = Endpoint("10.0.0.3", 8080)
        two.fakes[1].known_endpoints = {
            third: EndpointPartitions(frozenset({TopicPartition("input-1", JFK)}), frozenset())
        }
        reply = await two.get(PATH)
        assert (reply.status, reply.headers["Retry-After"], reply.json["error"]) == (503, "1", "moving")
        assert reply.json["missing"][0]["ask"] == "10.0.0.3:8080"

    with_query_servers(test)


def test_endpoints_change_during_a_query() -> None:
    async def test(three: Instances) -> None:
        three.own("delays", dict.fromkeys(range(PARTITIONS), 1))
        three.fakes[2].opens("delays", JFK, {window_key("JFK"): VALUE})
        open_stores = three.fakes[1].open_stores

        def moving(name: str) -> Any:
            three.own("delays", dict.fromkeys(range(PARTITIONS), 2))
            return open_stores(name)

        three.fakes[1].open_stores = moving  # type: ignore[method-assign]
        assert (await three.get(PATH)).json["instance"] == f"127.0.0.1:{three.servers[2].port}"

    with_query_servers(test, 3)


def test_two_instances_that_take_each_other_for_the_owner() -> None:
    async def test(two: Instances) -> None:
        topics = frozenset(TopicPartition("input-1", partition) for partition in range(PARTITIONS))
        for fake, other in ((0, 1), (1, 0)):
            own = two.fakes[other].own
            assert own is not None
            two.fakes[fake].known_endpoints = {own: EndpointPartitions(topics, frozenset())}
        reply = await asyncio.wait_for(two.get(PATH), 5)
        assert reply.status == 503

    with_query_servers(test)


def test_a_store_that_is_restored_here() -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 0), {JFK: 1})
        two.fakes[0].opens("delays", JFK, {window_key("JFK"): b'{"n":3}'}, StoreRole.RESTORING, 1_234)
        two.fakes[1].opens("delays", JFK, {window_key("JFK"): b'{"n":11}'}, StoreRole.STANDBY, 5)
        for number in (0, 1):
            reply = await two.get(PATH, number)
            assert reply.status == 503
            assert "its state is being restored: 1,234 records left" in reply.json["message"]
            assert reply.json["missing"][0]["ask"] == f"127.0.0.1:{two.servers[0].port}"
            assert reply.json["missing"][0]["copies"] == [f"127.0.0.1:{two.servers[1].port}"]
        stale = (await two.get(PATH + "?stale=true", 1)).json
        assert (stale["role"], stale["lag"], stale["value"]) == ("standby", 5, {"n": 11})

    with_query_servers(test)


def test_a_store_that_is_closed_while_it_is_read() -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 0))
        store = two.fakes[0].opens("delays", JFK, {window_key("JFK"): VALUE})
        get_many = store.get_many

        def closing(keys: Any) -> Any:
            store.closed = True
            return get_many(keys)

        store.get_many = closing  # type: ignore[method-assign]
        assert (await two.get(PATH)).status == 503

    with_query_servers(test)


def test_no_instance_has_the_partition() -> None:
    async def test(two: Instances) -> None:
        reply = await two.get(PATH)
        assert reply.status == 503
        reason = (
            "no instance that answers queries runs it: the group gives it to one soon, or the one that has it lacks an"
        )
        assert reason in reply.json["message"]
        two.fakes[0].count = None
        assert "doesn't know yet" in (await two.get(PATH)).json["message"]

    with_query_servers(test)


def test_the_owner_is_dead() -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 1), {JFK: 0})
        two.fakes[0].opens("delays", JFK, {window_key("JFK"): b'{"n":11}'}, StoreRole.STANDBY, None)
        await two.servers[1].close()
        reply = await two.get(PATH)
        assert reply.status == 503
        assert "if it is dead, others get its tasks soon" in reply.json["message"]
        assert reply.json["missing"][0]["copies"] == [f"127.0.0.1:{two.servers[0].port}"]
        stale = (await two.get(PATH + "?stale=true")).json
        assert (stale["role"], stale["lag"], stale["value"]) == ("standby", None, {"n": 11})

    with_query_servers(test)


def test_the_owner_hangs_and_another_instance_has_a_copy() -> None:
    async def test(three: Instances) -> None:
        three.own("delays", dict.fromkeys(range(PARTITIONS), 1), {JFK: 2})
        three.fakes[2].opens("delays", JFK, {window_key("JFK"): b'{"n":11}'}, StoreRole.STANDBY, 7)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            dead = Endpoint("127.0.0.1", silent.getsockname()[1])
            own = three.fakes[1].own
            assert own is not None
            three.fakes[0].known_endpoints[dead] = three.fakes[0].known_endpoints.pop(own)
            assert "no answer within 2 s" in (await three.get(PATH)).json["message"]
            stale = (await three.get(PATH + "?stale=true")).json
        assert (stale["instance"], stale["lag"]) == (f"127.0.0.1:{three.servers[2].port}", 7)

    with_query_servers(test, 3, timeout_ms=2_000)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: 3\r\n\r\nxyz",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: 30\r\n\r\nxyz",
        b"\x00\x00\x00\x04nonsense\r\n\r\n",
        http_response(b"\x81\xa1x" + b"\x91" * 100_000),
        http_response(encode(QueryResult([Row(window_key("JFK"), VALUE, JFK)], None, [], []))),
        http_response(
            encode(QueryResult([Row(window_key("JFK"), VALUE, 99)], None, [StoreCopy(99, "active", 0, None)], []))
        ),
        http_response(encode(QueryResult([], None, [], [MissingPartition(99, "whose?")]))),
    ],
)
def test_invalid_results_of_the_owner(answer: bytes) -> None:
    async def test(two: Instances) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            writer.close()

        other = await asyncio.start_server(serve, "127.0.0.1", 0)
        partitions = frozenset(TopicPartition("input-1", partition) for partition in range(PARTITIONS))
        two.fakes[0].known_endpoints = {
            Endpoint("127.0.0.1", other.sockets[0].getsockname()[1]): EndpointPartitions(partitions, frozenset())
        }
        reply = await two.get(PATH)
        assert (reply.status, reply.json["error"]) == (503, "moving")
        other.close()
        await other.wait_closed()

    with_query_servers(test)


# Keys in URLs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin", ["JFK", "Zürich", "東京", "a/b", "a b+c", "50%", "..", "?#&=", 'q"uote\\', "\n\t\0", "{", "@", ",", "🛫"]
)
def test_any_key_can_be_queried(origin: str) -> None:
    async def test(two: Instances) -> None:
        partition = partition_of(origin)
        two.own("delays", {each: int(each == partition) for each in range(PARTITIONS)})
        stored = window_key(origin)
        two.fakes[1].opens("delays", partition, {stored: b'{"n":1}'})
        for text in (f"{origin}@2013-01-01T05", stored.decode()):
            if origin == "{" and text is not stored.decode():
                text = text if text.startswith('{"') else stored.decode()
            reply = await two.get(f"/stores/delays/{quote(text, safe='').replace('.', '%2E')}")
            assert reply.status == 200, reply.json
            assert reply.json["key"]["origin"] == origin
        windows = await two.get(f"/stores/delays?key={quote(stored_route(origin), safe='')}")
        assert [row["key"]["origin"] for row in windows.json["rows"]] == [origin]

    with_query_servers(test)


def stored_route(origin: str) -> str:
    return json.dumps({"origin": origin}, ensure_ascii=False)


# Ranges ---------------------------------------------------------------------------------------------------------------


def test_thousands_of_keys_page_by_page() -> None:
    """From four partitions of two instances, in order, each once, with pages of any length."""

    async def test(two: Instances) -> None:
        two.own("delays", {0: 0, 1: 1, 2: 0, 3: 1})
        stores = [two.fakes[partition % 2].opens("delays", partition) for partition in range(PARTITIONS)]
        all_partitions = sorted(
            window_key(f"K{number % 50}", f"2013-01-{1 + number // 50 // 24:02}T{number // 50 % 24:02}:00:00.000Z")
            for number in range(5_000)
        )
        for key in all_partitions:
            stores[partition_of(json.loads(key)["origin"])].rows[key] = b'{"n":1,"state":{"n":1}}'
        for limit in (700, 10_000):
            seen, path = [], f"/stores/delays?limit={limit}"
            while path:
                page = (await two.get(path)).json
                assert len(page["rows"]) <= limit
                assert page["missing"] == page["copies"] == []
                seen += [json.dumps(row["key"], separators=(",", ":")).encode() for row in page["rows"]]
                path = page["next"]
            assert seen == all_partitions

        day = (await two.get("/stores/delays?from=2013-01-02&to=2013-01-03&limit=10000")).json["rows"]
        assert len(day) == 24 * 50
        assert {row["key"]["window"][:10] for row in day} == {"2013-01-02"}
        hour = (await two.get("/stores/delays?prefix=2013-01-02T07&limit=10000")).json["rows"]
        assert len(hour) == 50
        one = (await two.get("/stores/delays?key=K7&from=2013-01-02&to=2013-01-02T05&state=true")).json
        assert [row["key"] for row in one["rows"]] == [
            {"window": f"2013-01-02T{hour:02}:00:00.000Z", "origin": "K7"} for hour in range(5)
        ]
        assert one["rows"][0]["value"] == {"n": 1, "state": {"n": 1}}
        assert (await two.get("/stores/delays?from=2013-01-03&to=2013-01-02")).json["rows"] == []
        only = (await two.get("/stores/delays?partition=1&limit=10000")).json["rows"]
        assert {partition_of(row["key"]["origin"]) for row in only} == {1}
        assert len((await two.get("/stores/delays")).json["rows"]) == 100

    with_query_servers(test)


def test_large_values_are_read_a_few_at_a_time() -> None:
    store, sizes = MemoryStore({b"%04d" % number: b"x" * 100_000 for number in range(1_000)}), []
    scan = store.scan

    def counting(start: bytes | None = None, end: bytes | None = None, limit: int | None = None) -> Any:
        table = scan(start, end, limit)
        sizes.append(table.nbytes)
        return table

    store.scan = counting  # type: ignore[method-assign]
    page = merge_rows([scan_rows(store, 0, b"", None, 10_001)], 10_000)
    assert page.scanned_to is not None
    assert max(sizes) < 13_000_000  # the first rows; how large they are isn't known before
    assert sum(sizes) < 15_000_000
    assert [row.key for row in scan_rows(store, 0, b"", None, 10_001)] == sorted(store.rows)


def test_equal_keys_in_several_partitions_stay_on_one_page() -> None:
    async def test(two: Instances) -> None:
        two.own("airlines", {0: 0, 1: 1, 2: 0, 3: 1})
        for partition in range(PARTITIONS):
            two.fakes[partition % 2].opens("airlines", partition, {b"AA": b"{}", b"UA": b"{}"})
        page = (await two.get("/stores/airlines?limit=1")).json
        assert [row["key"] for row in page["rows"]] == ["AA"] * 4
        page = (await two.get(page["next"])).json
        assert ([row["key"] for row in page["rows"]], page["next"]) == (["UA"] * 4, None)

    with_query_servers(test)


def test_a_range_that_lacks_a_partition() -> None:
    async def test(two: Instances) -> None:
        two.own("airlines", {0: 0, 1: 0, 2: 0, 3: 1}, {3: 0})
        for partition in range(3):
            two.fakes[0].opens("airlines", partition, {f"A{partition}".encode(): b"{}"})
        two.fakes[0].opens("airlines", 3, {b"A3": b"{}"}, StoreRole.STANDBY, 9)
        reply = await two.get("/stores/airlines")
        assert reply.status == 503
        assert [each["partition"] for each in reply.json["missing"]] == [3]
        partial = (await two.get("/stores/airlines?partial=true")).json
        assert [row["key"] for row in partial["rows"]] == ["A0", "A1", "A2"]
        assert [each["partition"] for each in partial["missing"]] == [3]
        stale = (await two.get("/stores/airlines?stale=true")).json
        assert [row["key"] for row in stale["rows"]] == ["A0", "A1", "A2", "A3"]
        assert [(copy["partition"], copy["lag"]) for copy in stale["copies"]] == [(3, 9)]

    with_query_servers(test)


# Invalid requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/stores/delays/JFK", 400, "the window's start is missing"),
        ("/stores/delays/%FF@2013-01-01", 400, "not Unicode"),
        ("/stores/delays/%ED%A0%80@2013-01-01", 400, "not Unicode"),
        ("/stores/nothing/x", 404, "it has: airlines, delays, planes, routes"),
        ("/stores/visits-due/x", 404, "'visits-due' is what a step keeps for itself; its changelog has it"),
        ("/stores/visits-due", 404, "Those that can be: airlines, delays, planes, routes"),
        ("/stores/%FF/x", 404, "no store"),
        ("/stores//x", 404, "no such page"),
        ("/stores/../health", 404, ""),
        ("/etc/passwd", 404, "no such page"),
        ("/stores/delays?limt=5", 400, "unknown parameter 'limt'"),
        ("/stores/delays?limit=0", 400, "from 1 to 10000"),
        ("/stores/delays?limit=10001", 400, "from 1 to 10000"),
        ("/stores/delays?limit=99999999999999999999", 400, "from 1 to 10000"),
        ("/stores/delays?limit=1&limit=2", 400, "comes twice"),
        ("/stores/delays?partition=4", 400, "has no partition 4"),
        ("/stores/delays?stale=yes", 400, "true or false"),
        ("/stores/delays?from=%00", 400, "no key"),
        ("/stores/airlines?key=x", 400, "no windows"),
        ("/stores/delays?" + "&".join(f"a{n}=1" for n in range(100)), 400, "fields"),
        ("/health?x=1", 400, "no parameters"),
        ("/forwarded", 405, "POST"),
    ],
)
def test_hostile_urls(path: str, status: int, message: str) -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 0))
        reply = await two.get(path)
        assert reply.status == status, reply.body
        assert message in reply.json["message"]
        assert reply.headers["X-Content-Type-Options"] == "nosniff"

    with_query_servers(test)


def test_hostile_requests() -> None:
    async def test(two: Instances) -> None:
        assert (await two.get("/stores/delays/" + "x" * 100_000)).status == 400
        assert (await two.get("/stores", headers={"X": "y" * 100_000})).status == 400
        assert (await two.get("/stores", method="DELETE")).status == 405
        assert (await two.get("/stores", method="HEAD")).body == b""
        for body, kind, status in (
            (b"\xc1", "application/msgpack", 400),
            (b"\xdd\xff\xff\xff\xff", "application/msgpack", 400),
            (b"\x81\xa1x" + b"\x91" * 100_000, "application/msgpack", 400),  # nested deep, in an unknown field
            (encode({"store": "delays", "partitions": [0], "limit": 10_001}), "application/msgpack", 400),
            (encode({"store": "delays", "partitions": [0], "limit": 0}), "application/msgpack", 400),
            (encode({"store": "delays", "partitions": [0] * 10_001}), "application/msgpack", 400),
            (encode({"store": "nobody's", "partitions": [0]}), "application/msgpack", 200),
            (b"{}", "application/json", 415),
            (b"x" * 2_000_000, "application/msgpack", 413),
        ):
            reply = await two.get("/forwarded", method="POST", data=io.BytesIO(body), headers={"Content-Type": kind})
            assert reply.status == status
        elsewhere = await two.get("/stores", headers={"Host": "evil.example", "X-Forwarded-For": "::1"})
        assert elsewhere.status == 200
        for nonsense in (
            b"GET http://evil.example/stores HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\r\n\r\n",
            b"GET /%zz HTTP/1.1\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", two.servers[0].port)
            writer.write(nonsense + b"\r\n\r\n")
            await writer.drain()
            assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.")
            writer.close()
        assert (await two.get("/")).status == 200

    with_query_servers(test)


def test_a_response_does_not_have_the_text_of_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def test(two: Instances) -> None:
        two.own("delays", dict.fromkeys(range(PARTITIONS), 0))
        store = two.fakes[0].opens("delays", JFK)

        def broken(keys: Any) -> Any:
            raise RuntimeError("secret")

        store.get_many = broken  # type: ignore[method-assign]
        reply = await two.get(PATH)
        assert reply.status == 500
        assert b"secret" not in reply.body
        assert "a query failed" in caplog.text

    with_query_servers(test)


# Pages ----------------------------------------------------------------------------------------------------------------


def test_stores_page() -> None:
    async def test(two: Instances) -> None:
        two.fakes[0].opens("delays", 2)
        two.fakes[0].opens("delays", 1, role=StoreRole.STANDBY, lag=3)
        listed = {store["name"]: store for store in (await two.get("/stores")).json["stores"]}
        assert set(listed) == {"airlines", "delays", "planes", "routes", "tails"}
        assert listed["delays"] == {
            "name": "delays",
            "key": {"window": "start", "origin": "string"},
            "subtopology": "1",
            "partitions": 4,
            "here": [
                {"partition": 1, "role": "standby", "lag": 3},
                {"partition": 2, "role": "active", "lag": 0},
            ],
        }
        assert "/metrics" in (await two.get("/")).json

    with_query_servers(test)
