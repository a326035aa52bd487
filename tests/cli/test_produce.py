"""`kohort produce`: files of every format into a broker, and what is said of broken ones."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kohort.client.errors import ConnectionLostError
from kohort.testing import Broker

from .client_topics import Topics
from .support import invoke

both_paths = pytest.mark.usefixtures("kohort_command")


def produced(topics: Topics, topic: str, file: Path, data: bytes, *arguments: str) -> list[tuple[Any, ...]]:
    """Keys and values that came of a file."""
    file.write_bytes(data)
    done = invoke("produce", topic, str(file), *arguments, servers=topics.bootstrap)
    assert not done.exit_code, done.stderr
    return [(record.key, record.value) for record in topics.read(topic)]


# formats


@both_paths
def test_a_record_a_line(topics: Topics, topic: str, tmp_path: Path) -> None:
    found = produced(topics, topic, tmp_path / "lines", b"one\n\n\xff two\r\nthree")
    assert found == [(None, b"one"), (None, b""), (None, b"\xff two\r"), (None, b"three")]


@both_paths
def test_lines_with_keys_and_nulls(topics: Topics, topic: str, tmp_path: Path) -> None:
    data = b"a::1\nb::2::3\nc::NULL\nNULL::4\n"
    found = produced(topics, topic, tmp_path / "lines", data, "--key-separator", "::", "--null", "NULL", "-p", "0")
    assert found == [(b"a", b"1"), (b"b", b"2::3"), (b"c", None), (None, b"4")]


@both_paths
def test_json_lines_are_sent_as_they_are(topics: Topics, topic: str, tmp_path: Path) -> None:
    data = b'{"id": 7, "x":1}\n\n{"id":"b"}\r\n{"x":2}\n'
    found = produced(topics, topic, tmp_path / "lines", data, "-f", "json", "--key", "id", "--null-keys", "-p", "0")
    assert found == [(b"7", b'{"id": 7, "x":1}'), (b"b", b'{"id":"b"}'), (None, b'{"x":2}')]


def test_csv_rows_become_objects(topics: Topics, topic: str, tmp_path: Path) -> None:
    data = b'id;text\n007;"say ""hi"";\nbye"\n8;\n'
    found = produced(topics, topic, tmp_path / "csv", data, "-f", "csv", "--delimiter", ";", "--key", "id")
    assert found == [
        (b"007", rb'{"id":"007","text":"say \"hi\";\nbye"}'),
        (b"8", b'{"id":"8","text":""}'),
    ]


def test_an_empty_key_of_csv_is_none(topics: Topics, topic: str, tmp_path: Path) -> None:
    data = b"id,x\na,1\n,2\n"
    found = produced(topics, topic, tmp_path / "csv", data, "-f", "csv", "--key", "id", "--null-keys", "-p", "0")
    assert found == [(b"a", b'{"id":"a","x":"1"}'), (None, b'{"id":"","x":"2"}')]


def test_typed_csv_has_numbers(topics: Topics, topic: str, tmp_path: Path) -> None:
    found = produced(topics, topic, tmp_path / "csv", b"id,ok,x\n7,true,1.5\n8,false,\n", "-f", "csv", "--typed")
    assert found == [(None, b'{"id":7,"ok":true,"x":1.5}'), (None, b'{"id":8,"ok":false,"x":null}')]


def test_parquet_rows_become_objects(topics: Topics, topic: str, tmp_path: Path) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "tags": [["a"], None]}), file)
    found = produced(topics, topic, tmp_path / "rows", file.getvalue(), "-f", "parquet", "--key", "id")
    assert found == [(b"1", b'{"id":1,"tags":["a"]}'), (b"2", b'{"id":2,"tags":null}')]


def test_parquet_rows_need_their_key_unless_told_otherwise(topics: Topics, topic: str, tmp_path: Path) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1, None, 3]}), file)
    (tmp_path / "rows").write_bytes(file.getvalue())
    done = invoke("produce", topic, str(tmp_path / "rows"), "-f", "parquet", "--key", "id", servers=topics.bootstrap)
    assert done.exit_code == 1
    assert "row 2: the field 'id' is null, and it is the key; --null-keys sends such records" in done.stderr
    assert [record.key for record in topics.read(topic)] == [b"1"]
    other = topics.create_one()
    found = produced(topics, other, tmp_path / "rows", file.getvalue(), "-f", "parquet", "--key", "id", "--null-keys")
    assert {key for key, _ in found} == {b"1", None, b"3"}


@both_paths
def test_whole_records(topics: Topics, topic: str, tmp_path: Path) -> None:
    data = (
        b'{"topic":"other","offset":9,"timestamp":1700000000123,"key":"k","value":"/w==","value_encoding":"base64",'
        b'"headers":[{"key":"h","value":"1"},{"key":"n","value":null}]}\n{"value":null}\n'
    )
    assert produced(topics, topic, tmp_path / "saved", data, "-f", "records", "-p", "0") == [
        (b"k", b"\xff"),
        (None, None),
    ]
    first = topics.read(topic)[0]
    assert (first.timestamp, first.headers) == (1700000000123, [("h", b"1"), ("n", None)])


# options


@both_paths
def test_where_to_and_with_what(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create_one(partitions=3)
    (tmp_path / "a").write_text("1\n2\n")
    (tmp_path / "b").write_text("3\n")
    files = [str(tmp_path / name) for name in "ab"]
    options = ["-p", "2", "-H", "from=test=1", "-z", "zstd", "--acks", "1", "--batch-size", "1000", "--rate", "1000"]
    done = invoke("produce", topic, *files, *options, servers=topics.bootstrap)
    assert not done.exit_code, done.stderr
    assert done.stderr.startswith("sent 3 records (3 B) in ")
    found = topics.read(topic)
    assert [(record.value, record.partition, record.headers) for record in found] == [
        (value, 2, [("from", b"test=1")]) for value in (b"1", b"2", b"3")
    ]


@both_paths
def test_many_records_keep_their_order(topics: Topics, topic: str, tmp_path: Path) -> None:
    lines = [b"%d" % number * 25 for number in range(40_000)]  # a file of several blocks
    found = produced(topics, topic, tmp_path / "many", b"\n".join(lines))
    assert [value for _, value in found] == lines


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--format", "xml"], "one of lines, json, csv, parquet, records"),
        (["--format", "json", "--null-keys"], "--null-keys is for --key FIELD"),
        (["--key", "id"], "lines have no fields; --key-separator TEXT splits them"),
        (["--format", "json", "--key-separator", ":"], "--key FIELD"),
        (["--header", "x"], "NAME=VALUE is wanted"),
        (["--format", "csv", "--delimiter", "ab"], "one ASCII character"),
        (["--compression", "rar"], "compression_type is 'rar'"),
        (["--config", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_a_wrong_call(topics: Topics, options: list[str], complaint: str) -> None:
    done = invoke("produce", "any", *options, servers=topics.bootstrap)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_nobody_listens(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    done = invoke("produce", "t", str(tmp_path / "a"), "--timeout", "0.5", servers="127.0.0.1:1")
    assert done.exit_code == 1
    assert "127.0.0.1:1" in done.stderr


def test_settings_out_of_a_file(topics: Topics, topic: str, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(
        "acks=all\nlinger.ms=0\ncompression.type=lz4\nkey.serializer=Any\ngroup.id=g\n"
    )
    found = produced(topics, topic, tmp_path / "a", b"1\n", "--config", str(tmp_path / "client.properties"))
    assert found == [(None, b"1")]
    (tmp_path / "client.properties").write_text("linger.ms=soon\n")
    done = invoke("produce", topic, "--config", str(tmp_path / "client.properties"), servers=topics.bootstrap)
    assert done.exit_code == 2
    assert "linger.ms='soon': a whole number is wanted" in done.stderr


# broken input


@both_paths
@pytest.mark.parametrize(
    ("options", "data", "complaint", "sent"),
    [
        (["-f", "json"], b'{"a":1}\n[2]\n{"a":\n4\n', "line 3: not JSON", 2),
        (["-f", "json", "--key", "a"], b'{"a":1}\n[2]\n', "line 2: Expected `object`", 1),
        (
            ["-f", "json", "--key", "a"],
            b'{"a":1}\n\n{"b":2}\n{"a":3}\n',
            "line 3: there is no field 'a', and it is the",
            1,
        ),
        (["-f", "json", "--key", "a"], b'{"a":1}\n{"a":null}\n', "line 2: the field 'a' is null, and it is the key", 1),
        (["-f", "csv", "--typed", "--key", "a"], b"a,b\n1,2\n,3\n4,5\n", "row 3: the field 'a' is empty", 1),
        (["-f", "csv", "--key", "a"], b"a,b\n1,2\n,3\n4,5\n", "row 3: the field 'a' is empty, and it is the key", 1),
        (["-f", "records"], b'{"value":"x"}\n{"value":"=","value_encoding":"base64"}\n', "line 2: base64", 1),
        (["-K", ":"], b"a:1\nb\nc:2\n", "line 2: there is no key separator ':'", 1),
        (["-f", "csv"], b"a,b\n1,2\n3\n", "row 3: 2 fields wanted, as in the first row, and there are 1", 0),
        (["-f", "csv"], b"a,a\n1,2\n", "two fields are called 'a'", 0),
        (["-f", "csv", "--key", "z"], b"a,b\n1,2\n", "there is no field 'z'; there are a, b", 0),
        (["-f", "parquet"], b"PAR?", "Parquet", 0),
    ],
)
def test_broken_input_is_named_and_what_came_before_is_sent(
    topics: Topics, topic: str, tmp_path: Path, options: list[str], data: bytes, complaint: str, sent: int
) -> None:
    file = tmp_path / "broken"
    file.write_bytes(data)
    done = invoke("produce", topic, str(file), *options, servers=topics.bootstrap)
    assert done.exit_code == 1
    assert f"{file}" in done.stderr
    assert complaint in done.stderr
    said = "1 record was sent, and stays sent" if sent == 1 else f"{sent} records were sent, and stay sent"
    assert f"({said})" in done.stderr
    assert len(topics.read(topic)) == sent


@both_paths
def test_what_is_too_large_is_refused_and_what_came_before_is_counted(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "small").write_bytes(b"one\n")
    (tmp_path / "large").write_bytes(b"%02000000d\n" % 1)
    done = invoke("produce", topic, str(tmp_path / "small"), str(tmp_path / "large"), servers=topics.bootstrap)
    assert done.exit_code == 1
    assert "max_request_size" in done.stderr
    assert "(1 record was sent, and stays sent)" in done.stderr
    assert [record.value for record in topics.read(topic)] == [b"one"]


@pytest.mark.parametrize("kohort_command", ["rows"], indirect=True)
@both_paths
def test_rows_before_one_that_is_too_large_are_counted(topics: Topics, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\n%02000000d\ntwo\n" % 1)
    done = invoke("produce", topic, str(tmp_path / "a"), servers=topics.bootstrap)
    assert "(1 record was sent, and stays sent)" in done.stderr
    assert [record.value for record in topics.read(topic)] == [b"one"]


def test_files_that_cant_be_read(topics: Topics, topic: str, tmp_path: Path) -> None:
    assert "No such file" in invoke("produce", topic, str(tmp_path / "absent"), servers=topics.bootstrap).stderr
    assert "is a directory" in invoke("produce", topic, str(tmp_path), servers=topics.bootstrap).stderr


@both_paths
def test_there_is_no_such_partition(topics: Topics, topic: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    done = invoke("produce", topic, str(tmp_path / "a"), "--partition", "7", servers=topics.bootstrap)
    assert done.exit_code == 1
    assert "7" in done.stderr


def test_a_topic_that_was_made_is_told(topics: Topics, tmp_path: Path) -> None:
    topics.create("departures")
    (tmp_path / "a").write_text("1\n2\n")
    file = str(tmp_path / "a")
    done = invoke("produce", "depatures", file, "--no-create", servers=topics.bootstrap)
    assert done.exit_code == 1
    assert "there is no topic 'depatures'; did you mean 'departures'?" in done.stderr
    assert "depatures" not in topics.names()
    said = "there was no topic 'depatures': it has been made, with 1 partition; did you mean 'departures'?"
    done = invoke("produce", "depatures", file, servers=topics.bootstrap)
    assert done.exit_code == 0 and said in done.stderr
    for arguments in ([], ["--no-create"]):
        done = invoke("produce", "depatures", file, *arguments, servers=topics.bootstrap)
        assert done.exit_code == 0 and done.stderr.startswith("sent 2 records")
    done = invoke("produce", "unheard-of", file, "--quiet", servers=topics.bootstrap)
    assert (done.exit_code, done.stderr) == (0, "")
    assert len(topics.read("depatures")) == 6 and len(topics.read("unheard-of")) == 2


def test_a_consumers_property_has_no_say_in_whether_a_topic_is_made(topics: Topics, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "config").write_text("allow.auto.create.topics=false\nmax.block.ms=300\n")
    call = ("produce", "both-ways", str(tmp_path / "a"), "--config", str(tmp_path / "config"))
    assert invoke(*call, "--no-create", servers=topics.bootstrap).exit_code == 1
    done = invoke(*call, servers=topics.bootstrap)
    assert done.exit_code == 0, done.stderr
    assert len(topics.read("both-ways")) == 1


def test_no_topic_is_made_where_the_look_up_fails(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("1\n")

    async def fail(*_: object) -> None:
        raise ConnectionLostError("the broker went")

    call = ("produce", "undreamt-of", str(tmp_path / "a"), "--timeout", "2", "--no-create")
    monkeypatch.setattr("kohort.client.administration.topics.Topics.list", fail)
    done = invoke(*call, servers=topics.bootstrap)
    assert done.exit_code == 1 and "there is no topic 'undreamt-of'" in done.stderr
    monkeypatch.setattr("kohort.client.admin.Admin.start", fail)
    done = invoke(*call, servers=topics.bootstrap)
    assert done.exit_code == 1 and "UNKNOWN_TOPIC_OR_PARTITION" in done.stderr
    assert "max_block_ms=2000" in done.stderr
    assert "undreamt-of" not in topics.names()


def test_where_no_topics_are_made_the_error_says_what_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "config").write_text("max.block.ms=300\n")
    with Broker({"auto.create.topics.enable": "false"}) as broker:
        Topics(broker.bootstrap_servers).create("departures")
        call = ("depatures", str(tmp_path / "a"), "--config", str(tmp_path / "config"))
        done = invoke("produce", *call, servers=broker.bootstrap_servers)
    assert done.exit_code == 1
    assert "(UNKNOWN_TOPIC_OR_PARTITION); did you mean 'departures'?" in " ".join(done.stderr.split())


# standard input


def started(topics: Topics, topic: str, kohort: list[str]) -> subprocess.Popen[bytes]:
    command = [*kohort, "produce", topic, "-b", topics.bootstrap]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_pipe_is_sent_as_it_comes_and_sigterm_says_how_far_it_was(
    topics: Topics, topic: str, kohort_command: list[str]
) -> None:
    with started(topics, topic, kohort_command) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\nhal")
        process.stdin.flush()
        deadline = time.monotonic() + 30
        while len(topics.read(topic)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"sent 2 records" in said
    assert [record.value for record in topics.read(topic)] == [b"one", b"two"]


def test_typed_lines_go_at_once(topics: Topics, topic: str) -> None:
    controller, terminal = os.openpty()
    command = [sys.executable, "-m", "kohort.cli", "produce", topic, "-b", topics.bootstrap]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        os.close(terminal)
        os.write(controller, b"typed\n")
        deadline = time.monotonic() + 30
        while not topics.read(topic):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.write(controller, b"\x04")  # Ctrl-D: the end
        _, said = process.communicate(timeout=30)
    os.close(controller)
    assert process.returncode == 0
    assert b"sent 1 record (5 B)" in said
