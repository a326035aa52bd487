"""Which task a record belongs to is its key's to say: records without one, and records that lie elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from kohort.protocol.records.partitioner import partition_of
from kohort.spark import DeadLetter, Drop, StreamsApp, count
from kohort.spark.errors import ApplicationError
from kohort.spark.monitoring.events import STREAM
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, producer, read, run_until

PARTITIONS = 4
KEYS = [f"key-{number}" for number in range(12)]
Record = tuple[int | None, str | None, object]


@pytest.fixture
def servers(kohort_fresh_broker: Broker) -> str:
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "in", "names", partitions=PARTITIONS)
    create_topics(servers, "counts", "joined", "left", "all", "graves")
    return servers


def test_records_without_a_key_are_left_out_and_counted(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    """Each of four tasks would have a group of its own under the same key: the one that came last looked right."""
    sent = [(at, None, {"k": "x"}) for at in range(PARTITIONS) for _ in range(at + 1)]
    send(servers, "in", sent)
    app = StreamsApp("keyless", bootstrap_servers=servers, state_dir=tmp_path)
    stream = app.stream("in", schema="k STRING", key="k")
    stream.group_by("k").aggregate("x", c=count()).to("counts")
    stream.transform(lambda df: df.dropna()).to("all")
    heard = run_without_failure(app, spark, lambda heard: heard.total("records", input=STREAM) == len(sent))
    assert values(servers, "counts") == []
    assert len(values(servers, "all")) == len(sent)  # nothing goes by their place there
    assert reasons(heard) == {"no key": 10}


def test_records_without_a_key_are_joined_with_no_table(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    sent = [(at, None, {"k": "x"}) for at in range(PARTITIONS) for _ in range(at + 1)]
    send(servers, "names", [(None, "x", {"k": "x", "name": "X"})])
    send(servers, "in", [*sent, (None, "x", {"k": "x"})])
    app = StreamsApp("keyless", bootstrap_servers=servers, state_dir=tmp_path)
    names = app.table("names", schema="k STRING, name STRING", key="k")
    stream = app.stream("in", schema="k STRING", key="k")
    stream.join(names, "k").to("joined")
    stream.join(names, "k", "left").to("left")
    heard = run_without_failure(app, spark, lambda heard: heard.total("records", input=STREAM) == len(sent) + 1)
    assert values(servers, "joined") == [{"k": "x", "name": "X"}]
    assert [row["name"] for row in values(servers, "left")].count(None) == len(sent)
    assert len(values(servers, "left")) == len(sent) + 1
    assert reasons(heard) == {"no key": 10}


def test_records_that_lie_elsewhere_stop_the_application_and_it_says_what_to_write(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    """As librdkafka writes them, unless it is told otherwise."""
    librdkafkas = confluent_kafka.Producer({"bootstrap.servers": servers})
    for key in KEYS * 3:
        librdkafkas.produce("in", json.dumps({"k": key}).encode(), key.encode())
    librdkafkas.flush()
    wrong = [key for key in KEYS if partition_of(key.encode(), PARTITIONS) != crc32(key)]
    assert wrong

    app = counting("strict", servers, tmp_path)
    said = r"can't be taken: in-\d at offset \d+: k = 'key-\d+' belongs into partition \d of 4 by murmur2, .*"
    said += r'partitioner="crc32" fits here .*Or say \.repartition\("k"\)'
    with pytest.raises(ApplicationError, match=said):
        run_until(app, spark, Heard(), lambda: False)
    assert values(servers, "counts") == []

    app = StreamsApp("repartitioned", bootstrap_servers=servers, state_dir=tmp_path)
    stream = app.stream("in", schema="k STRING", key="k")
    stream.repartition("k").group_by("k").aggregate("x", c=count()).to("counts")
    run_without_failure(app, spark, lambda heard: last_counts(servers) == dict.fromkeys(KEYS, 3))

    app = counting("by-crc32", servers, tmp_path, "joined", partitioner="crc32")
    heard = run_without_failure(app, spark, lambda heard: heard.total("records", input=STREAM) == 36)
    assert sorted(row["k"] for row in values(servers, "joined")) == sorted(KEYS)  # one group, in one task, each
    assert last_counts(servers, "joined") == dict.fromkeys(KEYS, 3)
    assert reasons(heard) == {}


def test_records_that_lie_elsewhere_go_where_the_program_says(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    """Of the stream and of its table, for all that is done with them alike."""
    astray = [((partition_of(key.encode(), PARTITIONS) + 1) % PARTITIONS, key, {"k": key}) for key in KEYS]
    send(servers, "in", [*astray, *[(None, key, {"k": key}) for key in KEYS]])
    send(servers, "names", [(at, key, {"k": key, "name": "wrong"}) for at, key, _ in astray])
    send(servers, "names", [(None, KEYS[0], {"k": KEYS[0], "name": "right"}), (astray[0][0], KEYS[0], None)])
    app = StreamsApp("careful", bootstrap_servers=servers, state_dir=tmp_path, on_error=Drop())
    names = app.table("names", schema="k STRING, name STRING", key="k")
    stream = app.stream("in", schema="k STRING", key="k", on_error=DeadLetter("graves"))
    stream.join(names, "k").to("joined")
    stream.group_by("k").aggregate("x", c=count()).to("counts")
    stream.to("all")
    heard = run_without_failure(app, spark, lambda heard: heard.total("records", input=STREAM) == 2 * len(KEYS))
    assert values(servers, "joined") == [{"k": KEYS[0], "name": "right"}]
    assert last_counts(servers) == dict.fromkeys(KEYS, 1)
    assert sorted(row["k"] for row in values(servers, "all")) == sorted(KEYS)
    assert sorted(row["k"] for row in values(servers, "graves")) == sorted(KEYS)
    assert reasons(heard, STREAM) == {"misplaced": len(KEYS)}
    assert reasons(heard, "names") == {"misplaced": len(KEYS) + 1}


def test_tombstones_of_a_stream_are_left_out_and_counted(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    create_topics(servers, "kept")
    for topic in ("in", "kept"):
        send(servers, topic, [(None, "x", {"k": "x"}), (None, "x", None)])
    app = StreamsApp("tombs", bootstrap_servers=servers, state_dir=tmp_path)
    app.stream("in", schema="k STRING").group_by("k").aggregate("x", c=count()).to("counts")
    app.stream("kept", schema="k STRING", tombstones="keep").group_by("k").aggregate("y", c=count()).to("all")
    heard = run_without_failure(
        app, spark, lambda heard: len(values(servers, "counts")) == 1 and len(values(servers, "all")) == 2
    )
    assert values(servers, "counts") == [{"k": "x", "c": 1}]
    assert {row["k"]: row["c"] for row in values(servers, "all")} == {"x": 1, None: 1}
    assert reasons(heard) == {"no value": 1}


# ---------------------------------------------------------------------------------------------------------------------


def send(servers: str, topic: str, records: Sequence[Record]) -> None:
    """Records of (partition, or None for the key's own, key, value)."""
    sending = producer(servers)
    for at, key, value in records:
        where = {} if at is None else {"partition": at}
        sending.produce(
            topic, None if value is None else json.dumps(value).encode(), None if key is None else key.encode(), **where
        )
    sending.flush()


def counting(name: str, servers: str, tmp_path: Path, topic: str = "counts", **more: str) -> StreamsApp:
    app = StreamsApp(name, bootstrap_servers=servers, state_dir=tmp_path)
    stream = app.stream("in", schema="k STRING", key="k", **more)  # type: ignore[arg-type]
    stream.group_by("k").aggregate("x", c=count()).to(topic)
    return app


def run_without_failure(app: StreamsApp, spark: SparkSession, is_done: Callable[[Heard], bool]) -> Heard:
    """Run until it has got so far. Nothing may fail."""
    heard = Heard()
    run_until(app, spark, heard, lambda: is_done(heard))
    assert not heard.failures
    assert is_done(heard)
    return heard


def reasons(heard: Heard, *inputs: str) -> dict[str, int]:
    """Why records were dropped."""
    found: dict[str, int] = {}
    for each in heard.epochs:
        for reason, number in each.reasons.items() if not inputs or each.input in inputs else ():
            found[reason] = found.get(reason, 0) + number
    return found


def values(servers: str, topic: str) -> list[dict[str, object]]:
    return [json.loads(message.value()) for message in read(servers, topic)]


def last_counts(servers: str, topic: str = "counts") -> dict[object, object]:
    return {row["k"]: row["c"] for row in values(servers, topic)}


def crc32(key: str) -> int:
    return partition_of(key.encode(), PARTITIONS, "crc32")
