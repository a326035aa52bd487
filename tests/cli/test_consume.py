"""`kohort consume`: what it prints, where it starts and stops, and what it commits."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from .client_topics import Topics
from .support import invoke

both_paths = pytest.mark.usefixtures("kohort_command")
TIME = 1_700_000_000_000


def consumed(topics: Topics, directory: Path, *arguments: str) -> bytes:
    """What it writes."""
    done = invoke("consume", *arguments, "--output", str(directory / "out"), servers=topics.bootstrap)
    assert not done.exit_code, done.stderr or done.exception
    return (directory / "out").read_bytes()


# where it starts and stops


@both_paths
def test_all_up_to_now_then_what_is_new(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b"one", b"", b"\xff", None])
    arguments = [topic, "--from-beginning", "--exit", "--group", "readers"]
    assert consumed(topics, tmp_path, *arguments) == b"one\n\n\xff\nnull\n"
    assert topics.committed("readers", topic) == 4
    topics.write(topic, [b"more"])
    assert consumed(topics, tmp_path, *arguments) == b"more\n"
    assert consumed(topics, tmp_path, *arguments) == b""
    assert topics.committed("readers", topic) == 5


def test_no_commit(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b"one"])
    arguments = [topic, "--from-beginning", "--exit", "--group", "shy", "--no-commit"]
    assert consumed(topics, tmp_path, *arguments) == b"one\n"
    assert topics.committed("shy", topic) == -1001


@both_paths
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--from-beginning"], b"0123456789"),
        (["--offset", "earliest"], b"0123456789"),
        (["--offset", "latest"], b""),
        ([], b""),
        (["--offset", "7"], b"789"),
        (["--offset", "-2"], b"89"),
        (["--offset", "-99"], b"0123456789"),
        (["--from", "2023-11-14T22:13:24"], b"456789"),
        (["--from", str(TIME + 8000), "--to", "1s"], b"89"),
        (["--from-beginning", "--to", "2023-11-14T22:13:22Z"], b"01"),
        (["--from", "2033-01-01"], b""),
        (["--from-beginning", "-n", "3"], b"012"),
    ],
)
def test_ranges(topics: Topics, tmp_path: Path, options: list[str], found: bytes) -> None:
    topic = "digits"
    if topic not in topics.names():
        topics.create(topic)
        for digit in range(10):
            topics.write(topic, [b"%d" % digit], timestamp=TIME + 1000 * digit)
    assert consumed(topics, tmp_path, topic, "--exit", *options).replace(b"\n", b"") == found


def test_partitions_topics_and_patterns(topics: Topics, tmp_path: Path) -> None:
    for topic in ("day.monday", "day.tuesday"):
        topics.create(topic, partitions=2)
        for partition in range(2):
            topics.write(topic, [b"x"], partition=partition)
    where = ["--from-beginning", "--exit", "--template", "%t %p"]
    found = {
        options: sorted(consumed(topics, tmp_path, *options, *where).decode().splitlines())
        for options in [("day.monday", "-p", "1"), ("day.monday", "day.tuesday", "-p", "0"), ("--pattern", r"day\..*")]
    }
    assert list(found.values()) == [
        ["day.monday 1"],
        ["day.monday 0", "day.tuesday 0"],
        ["day.monday 0", "day.monday 1", "day.tuesday 0", "day.tuesday 1"],
    ]
    done = consumed(topics, tmp_path, "--pattern", r"day\..*", "--group", "days", *where)
    assert len(done.splitlines()) == 4


@both_paths
def test_what_a_group_has_cut_short_is_read_next(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b"%d" % number for number in range(10)])
    arguments = [topic, "--from-beginning", "--group", "slow", "-n", "4"]
    assert consumed(topics, tmp_path, *arguments) == b"0\n1\n2\n3\n"
    assert topics.committed("slow", topic) == 4
    assert consumed(topics, tmp_path, *arguments) == b"4\n5\n6\n7\n"
    assert consumed(topics, tmp_path, *arguments[:-2], "--exit") == b"8\n9\n"


@both_paths
def test_aborted_transactions(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b"before"])
    topics.write_aborted(topic, [b"aborted"])
    arguments = [topic, "--from-beginning", "--exit"]
    assert consumed(topics, tmp_path, *arguments) == b"before\naborted\n"
    committed = [*arguments, "--isolation", "read_committed", "--group", "strict"]
    assert consumed(topics, tmp_path, *committed) == b"before\n"
    assert topics.committed("strict", topic) == 3  # past the marker at the end


@both_paths
@pytest.mark.parametrize(
    ("isolation", "last", "found"),
    [
        ("read_uncommitted", "-1", b"aborted\n"),
        ("read_uncommitted", "-3", b"one\ntwo\naborted\n"),
        ("read_committed", "-1", b"two\n"),
        ("read_committed", "-2", b"one\ntwo\n"),
        ("read_committed", "-10001", b"one\ntwo\n"),
    ],
)
def test_the_last_record_is_no_marker(topics: Topics, tmp_path: Path, isolation: str, last: str, found: bytes) -> None:
    if (topic := "ends-with-a-marker") not in topics.names():
        topics.create(topic)
        topics.write(topic, [b"one", b"two"])
        topics.write_aborted(topic, [b"aborted"])
    assert consumed(topics, tmp_path, topic, "--exit", "--isolation", isolation, "--offset", last) == found


def test_the_last_record_is_found_before_many_that_count_for_nothing(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.write_aborted(topic, [b"x"])
    arguments = [topic, "--exit", "--isolation", "read_committed", "--offset", "-1"]
    assert consumed(topics, tmp_path, *arguments) == b""
    topics.write(topic, [b"early", b"late"])
    topics.write_aborted(topic, [b"x"] * 1_000)
    assert consumed(topics, tmp_path, *arguments) == b"late\n"


# what it writes


@both_paths
def test_text_with_more_than_values(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b"v"], key=b"k", timestamp=TIME, headers=[("a", b"1"), ("b", b"2")])
    topics.write(topic, [None], timestamp=TIME)
    arguments = [topic, "--from-beginning", "--exit"]
    for options, lines in [
        (["--key"], b"k\tv\nnull\tnull\n"),
        (["--key-separator", " \\%: "], b"k \\%: v\nnull \\%: null\n"),
        (["--timestamp"], b"2023-11-14T22:13:20.000Z\tv\n2023-11-14T22:13:20.000Z\tnull\n"),
        (["--headers", "--null", ""], b"a=1,b=2\tv\n\t\n"),
        (["--template", r"%p/%o %T %k=%s [%h]%%\x21"], b"0/0 %d k=v [a=1,b=2]%%!\n0/1 %d null=null []%%!\n"),
        (["--template", r"%K %S"], b"1 1\n-1 -1\n"),
        (["--template", r"%o\n"], b"0\n1\n"),
        (["--template", "x"], b"x\nx\n"),
    ]:  # fmt: skip
        if b"%d" in lines:
            lines %= (TIME, TIME)
        assert consumed(topics, tmp_path, *arguments, *options) == lines


@both_paths
def test_json_lines(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b'"\xc3\xbc\n\\"'], key=b"k", timestamp=TIME, headers=[("a", b"1")])
    topics.write(topic, [b"\xff"], timestamp=TIME)
    found = consumed(topics, tmp_path, topic, "--from-beginning", "--exit", "--format", "json")
    both = {"topic": topic, "partition": 0, "timestamp": TIME}
    assert [json.loads(line) for line in found.splitlines()] == [
        both | {"offset": 0, "key": "k", "value": '"ü\n\\"', "headers": [{"key": "a", "value": "1"}]},
        both
        | {
            "offset": 1,
            "key": None,
            "value": base64.b64encode(b"\xff").decode(),
            "value_encoding": "base64",
            "headers": [],
        },
    ]


def test_parquet(topics: Topics, topic: str, tmp_path: Path) -> None:
    topics.write(topic, [b"\xff", None], key=b"k", timestamp=TIME, headers=[("a", b"1")])
    arguments = [topic, "--from-beginning", "--exit", "--format", "parquet", "--group", "lake"]
    consumed(topics, tmp_path, *arguments)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert [(row["topic"], row["partition"], row["offset"], row["key"], row["value"]) for row in rows] == [
        (topic, 0, 0, b"k", b"\xff"),
        (topic, 0, 1, b"k", None),
    ]
    assert rows[0]["headers"] == [{"key": "a", "value": b"1"}]
    assert rows[0]["timestamp"].timestamp() * 1000 == TIME
    assert topics.committed("lake", topic) == 2
    consumed(topics, tmp_path, *arguments)
    assert pq.read_table(tmp_path / "out").num_rows == 0


@both_paths
def test_many_records(topics: Topics, topic: str, tmp_path: Path) -> None:
    values = [b"%d" % number * 25 for number in range(30_000)]  # several answers
    topics.write(topic, values[:15_000])
    topics.write(topic, values[15_000:])
    found = consumed(topics, tmp_path, topic, "--from-beginning", "--exit", "--group", "many")
    assert found.splitlines() == values
    assert topics.committed("many", topic) == len(values)


# mistakes


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "topics are wanted, or --pattern"),
        (["t", "--pattern", "x"], "topics are wanted, or --pattern"),
        (["--pattern", "("], "--pattern ("),
        (["t", "--from-beginning", "--offset", "3"], "exclude each other"),
        (["invoices:1", "--offset", "4036"], "one partition is read with: invoices --partition 1"),
        (["u", "t:0-3"], "one partition is read with: t --partition N, for each"),
        (["t", "--offset", "soon"], "earliest, latest, an offset, or -N"),
        (["t", "--from", "yesterday"], "--from: 'yesterday'"),
        (["t", "--group", "g", "--offset", "5"], "--group excludes --partition"),
        (["t", "--format", "xml"], "one of text, json, parquet"),
        (["t", "--format", "parquet"], "needs --output"),
        (["t", "--format", "json", "--key"], "are for text"),
        (["t", "--template", "%z"], "%z isn't known; there are %t (topic)"),
        (["t", "--template", r"\z"], r"\z isn't known"),
        (["t", "--template", "%v", "--key"], "--template excludes --key"),
        (["t", "--isolation", "strict"], "read_uncommitted, read_committed"),
        (["t", "--group-protocol", "new"], "classic, consumer"),
    ],
)
def test_a_wrong_call(topics: Topics, options: list[str], complaint: str) -> None:
    done = invoke("consume", *options, servers=topics.bootstrap)
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_what_isnt_there(topics: Topics, topic: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    done = invoke("consume", topic, "--exit", "--partition", "3", "--output", out, servers=topics.bootstrap)
    assert (done.exit_code, "no 3" in done.stderr) == (1, True)
    done = invoke("consume", topic, "--exit", "--output", str(tmp_path / "no" / "out"), servers=topics.bootstrap)
    assert (done.exit_code, "No such file" in done.stderr) == (1, True)
    begun = time.monotonic()
    done = invoke(
        "consume", topic[:-1] + "-" + topic[-1], "--exit", "--timeout", "60", "--output", out, servers=topics.bootstrap
    )
    assert (done.exit_code, f"did you mean '{topic}'" in " ".join(done.stderr.split())) == (1, True)
    assert time.monotonic() - begun < 30


# as a process


KOHORT = [sys.executable, "-m", "kohort.cli"]


def started(topics: Topics, *arguments: str, kohort: list[str] = KOHORT) -> subprocess.Popen[bytes]:
    command = [*kohort, "consume", *arguments, "-b", topics.bootstrap]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_it_follows_and_sigterm_commits_what_was_written(topics: Topics, topic: str, kohort_command: list[str]) -> None:
    topics.write(topic, [b"one"])
    with started(topics, topic, "--from-beginning", "--group", "followers", kohort=kohort_command) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        topics.write(topic, [b"two"])
        assert process.stdout.readline() == b"two\n"
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, b"")
    assert b"read 2 records" in said
    assert topics.committed("followers", topic) == 2


def test_a_reader_that_has_enough_ends_it_quietly(topics: Topics, topic: str) -> None:
    topics.write(topic, [b"x" * 100] * 50_000)
    with started(topics, topic, "--from-beginning", "--group", "head", "-q") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"x" * 100 + b"\n"
        process.stdout.close()
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert topics.committed("head", topic) < 50_000


def test_a_reader_that_goes_while_nothing_comes_ends_it_too(topics: Topics, topic: str) -> None:
    topics.write(topic, [b"one"])
    with started(topics, topic, "--from-beginning", "--group", "idle", "-q") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        process.stdout.close()
        assert process.wait(30) == 1
    assert topics.committed("idle", topic) == 1


def test_sigterm_while_nobody_reads_commits_nothing_that_wasnt_written(
    topics: Topics, topic: str, kohort_command: list[str]
) -> None:
    topics.write(topic, [b"%0100d" % number for number in range(50_000)])
    with started(topics, topic, "--from-beginning", "--group", "stuck", "-q", kohort=kohort_command) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        time.sleep(0.5)  # the pipe is full by now, or will be: either way all that counts is what follows
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
        lines = [line, *process.stdout.read().splitlines(keepends=True)]
    assert code == 0
    assert topics.committed("stuck", topic) <= len(lines)


def test_members_that_exit_share_the_work(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create_one(partitions=4)
    for partition in range(4):
        topics.write(topic, [b"%d" % partition] * 1000, partition=partition)
    members = [started(topics, topic, "--from-beginning", "--exit", "--group", "shared") for _ in range(2)]
    written = [process.communicate(timeout=60)[0].split() for process in members]
    assert [process.returncode for process in members] == [0, 0]
    assert sorted(written[0] + written[1]) == sorted([b"%d" % partition for partition in range(4)] * 1000)
