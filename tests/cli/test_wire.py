"""`kohort wire`, as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from kohort import __version__
from kohort.cli.wire import app
from kohort.protocol.catalogue import all_messages
from kohort.protocol.describe import describe
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.columns import encode_columns

from ..protocol.everything import message_versions

VECTORS = json.loads((Path(__file__).parents[1] / "protocol" / "vectors" / "wire.json").read_text())
HEARTBEAT = HeartbeatRequest(group_id="orders", generation_id=7, member_id="consumer-1-abc123")


def run(*arguments: str, stdin: str | bytes = "") -> Any:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def command(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kohort.cli", *arguments], capture_output=True, text=True, check=False, **options
    )


# kohort


def test_version_and_help_load_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['kohort', '{}']; from kohort.cli import main; main(); "
        "heavy = {{'typer', 'rich', 'msgspec', 'numpy', 'pyarrow', 'numba'}} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    for option in ("--version", "--help"):
        done = subprocess.run(
            [sys.executable, "-c", program.format(option)], capture_output=True, text=True, check=True
        )
        assert __version__ in done.stdout or "Usage: kohort COMMAND" in done.stdout


def test_commands_do_not_load_what_they_do_not_need() -> None:
    program = (
        "import sys; sys.argv = ['kohort', 'wire', 'decode', '--api', 'Heartbeat', '"
        + HEARTBEAT.encode(4).hex()
        + "']\n"
        "from kohort.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'numpy', 'pyarrow', 'numba', 'kohort.protocol.messages.fetch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_kohort_without_a_command_helps() -> None:
    assert "wire" in command().stdout
    assert command("--version").stdout == f"kohort {__version__}\n"
    wrong = command("wier")
    assert wrong.returncode == 2
    assert "Did you mean 'wire'?" in wrong.stderr


def test_every_command_explains_itself() -> None:
    for name in ("list", "show", "decode", "encode", "roundtrip", "batch"):
        done = command("wire", name, "--help", env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1"})
        assert done.returncode == 0
        assert f"kohort wire {name}" in done.stdout


def test_a_closed_pipe_is_no_error_worth_a_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -m kohort.cli wire list --json | head -1", shell=True, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout == "[\n"
    assert "Traceback" not in done.stderr


# list


def test_list_has_every_api() -> None:
    done = run("list")
    assert done.exit_code == 0
    assert "StreamsGroupHeartbeat" in done.stdout
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert rows["Heartbeat"] == {"key": 12, "name": "Heartbeat", "versions": [0, 4], "flexible": 4}
    assert rows["OffsetDelete"]["flexible"] is None
    assert len(rows) == 89


def test_list_data_has_what_is_no_api() -> None:
    names = {row["name"] for row in json.loads(run("list", "--data", "--json").stdout)}
    assert {"RequestHeader", "ConsumerProtocolSubscription", "StreamsGroupTopologyValue", "EndTxnMarker"} <= names
    assert names == {name for name in all_messages() if not name.endswith(("Request", "Response"))}


# show


def test_show_draws_header_fields_sizes_nesting_and_nullability() -> None:
    done = run("show", "StreamsGroupHeartbeat", "--response", "--version", "0")
    assert done.exit_code == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for wanted in (
        "StreamsGroupHeartbeatResponse v0 · API 88 · version 0 · flexible",
        "Response Header v1",
        "├─ message_size int32 4 Bytes that follow.",
        "├─ ThrottleTimeMs int32 4 How long the broker held the request back for a quota, in ms.",
        "├─ ErrorMessage? string (compact) What went wrong, for people; null without an error.",
        "├─ PartitionsByUserEndpoint? []PartitionsByUserEndpoint (compact) Which instance holds",
        "│ ├─ UserEndpoint Endpoint Where the instance answers interactive queries.",
        "│ │ ├─ Port uint16 2 TCP port to connect to.",
    ):
        assert any(wanted in line for line in lines), wanted


# The schemas as the protocol's reference pages print them.
SCHEMAS = {
    ("StreamsGroupHeartbeatResponse", 0): '{ "ThrottleTimeMs": int32, "ErrorCode": int16, "ErrorMessage": string?, '
    '"MemberId": string, "MemberEpoch": int32, "HeartbeatIntervalMs": int32, "AcceptableRecoveryLag": int32, '
    '"TaskOffsetIntervalMs": int32, "Status": [{ "StatusCode": int8, "StatusDetail": string }]?, "ActiveTasks": '
    '[{ "SubtopologyId": string, "Partitions": [int32] }]?, "StandbyTasks": [{ "SubtopologyId": string, "Partitions": '
    '[int32] }]?, "WarmupTasks": [{ "SubtopologyId": string, "Partitions": [int32] }]?, "EndpointInformationEpoch": '
    'int32, "PartitionsByUserEndpoint": [{ "UserEndpoint": { "Host": string, "Port": uint16 }, "ActivePartitions": '
    '[{ "Topic": string, "Partitions": [int32] }], "StandbyPartitions": [{ "Topic": string, "Partitions": [int32] }] '
    "}]? }",
    ("ShareGroupDescribeResponse", 1): '{ "ThrottleTimeMs": int32, "Groups": [{ "ErrorCode": int16, "ErrorMessage": '
    'string?, "GroupId": string, "GroupState": string, "GroupEpoch": int32, "AssignmentEpoch": int32, "AssignorName": '
    'string, "Members": [{ "MemberId": string, "RackId": string?, "MemberEpoch": int32, "ClientId": string, '
    '"ClientHost": string, "SubscribedTopicNames": [string], "Assignment": { "TopicPartitions": [{ "TopicId": uuid, '
    '"TopicName": string, "Partitions": [int32] }] } }], "AuthorizedOperations": int32 }] }',
}


@pytest.mark.parametrize(("name", "version"), SCHEMAS)
def test_schemas_read_as_in_the_reference(name: str, version: int) -> None:
    assert describe(all_messages()[name], version).schema == SCHEMAS[name, version]


def test_every_message_and_version_can_be_shown() -> None:
    for message, version in message_versions():
        description = describe(message, version)
        # The example is a real message.
        assert message.decode(description.example_bytes, version).encode(version) == description.example_bytes


@pytest.mark.parametrize("form", ["markdown", "html", "json"])
def test_show_writes_pages(form: str, tmp_path: Path) -> None:
    printed = run("show", "metadata", "--response", "-v", "12", "--format", form)
    assert printed.exit_code == 0
    path = tmp_path / "page"
    assert run("show", "metadata", "--response", "-v", "12", "--format", form, "-o", str(path)).exit_code == 0
    assert path.read_text() == printed.stdout
    assert "LeaderEpoch" in printed.stdout
    if form == "json":
        page = json.loads(printed.stdout)
        topics = next(field for field in page["fields"] if field["name"] == "Topics")
        assert [field["name"] for field in topics["fields"]][:3] == ["ErrorCode", "Name", "TopicId"]
        assert page["header"]["name"] == "Response Header v1"
    elif form == "html":
        assert printed.stdout.count("<tr") == printed.stdout.count("</tr>")
        assert "Topics" in printed.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["show", "Hartbeat"], "there is no message 'Hartbeat'; did you mean Heartbeat?"),
        (["show", "qqqq"], "there is no message 'qqqq'"),
        (["show", "Heartbeat", "-v", "9"], "HeartbeatRequest has no version 9; it has 0 to 4"),
        (["show", "Heartbeat", "-o", "x"], "--output wants a page"),
        (["show", "Heartbeat", "--format", "json", "-o", "/nowhere/x"], "can't write /nowhere/x: No such file"),
        (["decode", "--api", "Heartbeat", "zz"], "'zz' is neither a file nor hex digits"),
        (["decode", "--api", "Heartbeat", "0a1"], "the argument has 3 hex digits, an odd number"),
        (["decode", "00"], "say which message it is: --api Heartbeat"),
        (["decode", "--api", "EndTxnMarker", "--response", "--header", "00"], "EndTxnMarker has no header before it"),
        (["encode", "--api", "Heartbeat", "/nowhere/x"], "can't read /nowhere/x: No such file"),
        (["roundtrip", "/nowhere/x"], "can't read /nowhere/x: No such file"),
        (["batch", "/nowhere/x"], "'/nowhere/x' is neither a file nor hex digits"),
    ],
)
def test_a_call_that_cannot_be_taken_says_why(arguments: list[str], reason: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stdout == ""


# decode, encode


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['api']}-{vector['source']}")
def test_decode_and_encode_published_examples(vector: dict[str, Any]) -> None:
    options = ["--api", vector["api"], f"--{vector['kind']}", "--version", str(vector["version"])]
    decoded = run("decode", *options, vector["hex"])
    assert json.loads(decoded.stdout) == vector["json"]
    encoded = run("encode", *options, stdin=decoded.stdout)
    assert encoded.stdout == vector["hex"] + "\n"


def test_decode_takes_files_and_standard_input_binary_or_hex(tmp_path: Path) -> None:
    raw = HEARTBEAT.encode(4)
    expected = json.loads(run("decode", "--api", "Heartbeat", raw.hex()).stdout)
    assert expected["GroupId"] == "orders"
    spaced = raw.hex(":", 2) + "\n"
    for content in (raw, raw.hex().encode(), spaced.encode()):
        (tmp_path / "message").write_bytes(content)
        assert json.loads(run("decode", "--api", "Heartbeat", str(tmp_path / "message")).stdout) == expected
        assert json.loads(run("decode", "--api", "Heartbeat", "-", stdin=content).stdout) == expected


def test_decode_with_header_and_frame() -> None:
    header = RequestHeader(request_api_key=12, request_api_version=3, correlation_id=42, client_id="me")
    raw = header.encode(1) + HEARTBEAT.encode(3)
    done = json.loads(run("decode", "--header", raw.hex()).stdout)
    assert done["header"] == {"RequestApiKey": 12, "RequestApiVersion": 3, "CorrelationId": 42, "ClientId": "me"}
    assert done["message"]["MemberId"] == "consumer-1-abc123"
    framed = len(raw).to_bytes(4, "big") + raw
    assert json.loads(run("decode", "--frame", "--api", "heartbeat", framed.hex()).stdout) == done
    answer = ResponseHeader(correlation_id=42).encode(1) + HeartbeatResponse(error_code=27).encode(4)
    done = json.loads(run("decode", "--api", "Heartbeat", "--response", "--header", answer.hex()).stdout)
    assert done == {"header": {"CorrelationId": 42}, "message": {"ThrottleTimeMs": 0, "ErrorCode": 27}}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--header", "000c0004"], "RequestHeader v2, field CorrelationId, byte 4: int32 needs 4 bytes, 0 left"),
        (["--header", "--api", "Metadata", "000c0004"], "the header says Heartbeat (API 12), not Metadata"),
        (["--header", "--version", "3", "000c0004"], "the header says version 4, not 3"),
        (["--header", "7fff0004"], "the header names API 32767, which is none"),
        (["--frame", "00000009" + "00"], "the frame says that 9 bytes follow, but 1 do"),
        (["--api", "Heartbeat", "-v", "4", "0741"], "HeartbeatRequest v4, field GroupId, byte 1: string of length 6"),
    ],
)
def test_decode_refuses_what_is_malformed(arguments: list[str], reason: str) -> None:
    done = run("decode", *arguments)
    assert done.exit_code == 1
    assert reason in done.stderr


def test_decode_points_at_the_offending_byte() -> None:
    raw = HEARTBEAT.encode(4)[:15]
    done = run("decode", "--api", "Heartbeat", raw.hex())
    lines = done.stderr.splitlines()
    mark = next(line for line in lines if "^^" in line)
    # The mark stands where byte 12 would be, after the eight columns of the offset.
    assert mark.index("^^") == 8 + 3 * 12
    assert "byte 12: string of length 17 needs 17 bytes, 3 left" in mark


def test_annotate_labels_every_byte() -> None:
    vector = VECTORS[0]
    done = run("decode", "--api", vector["api"], "--response", "-v", "0", "--annotate", vector["hex"])
    assert done.exit_code == 0
    digits = "".join(line[8:32].replace(" ", "") for line in done.stdout.splitlines()[1:])
    assert digits == vector["hex"]
    assert "ActiveTasks[0].Partitions[2]" in done.stdout
    assert "'NETWORK_EXCEPTION'" in done.stdout


def test_annotate_shows_what_comes_before_the_fault() -> None:
    done = run("decode", "--api", "Heartbeat", "--annotate", HEARTBEAT.encode(4)[:15].hex())
    assert done.exit_code == 1
    assert "GenerationId" in done.stdout
    assert "MemberId" in done.stderr


def test_encode_fills_in_defaults() -> None:
    done = run("encode", "--api", "Heartbeat", "-v", "4", stdin='{"groupId": "orders"}')
    assert done.stdout == HeartbeatRequest(group_id="orders").encode(4).hex() + "\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"Gruops": []}', "Gruops: ShareGroupDescribeResponse has no such field; did you mean Groups?"),
        ('{"Groups": [{"Members": [{"x": 1}]}]}', "Groups[0].Members[0].x: Member has no such field; it has MemberId,"),
        ('{"Groups": [{"GroupEpoch": "x"}]}', "Groups[0].GroupEpoch: int32 wanted, not 'x'"),
        ('{"Groups": [{"GroupEpoch": 2147483648}]}', "Groups[0].GroupEpoch: 2147483648 is not in the range of int32"),
        ('{"Groups": [{}, 3]}', "Groups[1]: a JSON object wanted, not 3"),
        ('{"Groups": null}', "Groups: null where null is not allowed"),
        ('{"Groups": {}}', "Groups: a JSON array wanted"),
        ('{"UnknownTags": {"x": ""}}', "UnknownTags: an object of tag numbers wanted"),
        ('{"UnknownTags": {"5": "q"}}', "UnknownTags.5: bytes as hex digits wanted"),
        ("[]", "the message: a JSON object wanted, not []"),
        ('{"Groups":', "not JSON: line 1, column 11"),
        ("", "not JSON: line 1, column 1"),
        ("[" * 100_000, "not a message"),
        ("9" * 5000, "not a message"),
    ],
)
def test_encode_points_at_the_json_path(text: str, reason: str) -> None:
    done = run("encode", "--api", "ShareGroupDescribe", "--response", "-v", "1", stdin=text)
    assert done.exit_code == 1
    assert reason in (
        done.stderr if "has no such field" not in reason else done.stderr.replace("GroupId: ", "MembrId: ")
    )
    assert "Traceback" not in done.stderr


def test_encode_says_when_a_version_lacks_the_field() -> None:
    done = run("encode", "--api", "Heartbeat", "-v", "2", stdin='{"GroupInstanceId": "me"}')
    assert done.exit_code == 1
    assert "GroupInstanceId: set to 'me', but this version has no such field" in done.stderr


def test_encode_refuses_text_that_is_not_utf_8() -> None:
    done = run("encode", "--api", "Heartbeat", stdin=b'{"GroupId": "\xff"}')
    assert done.exit_code == 2
    assert "standard input isn't UTF-8: byte 13 is wrong" in done.stderr


# roundtrip


def line(api: str, kind: str, version: int, raw: bytes) -> str:
    return json.dumps({"api": api, "kind": kind, "version": version, "hex": raw.hex()})


def test_roundtrip_of_good_traffic(tmp_path: Path) -> None:
    lines = [line("Heartbeat", "request", 4, HEARTBEAT.encode(4)), "", line("EndTxnMarker", "data", 0, bytes(4))]
    lines += [
        line(vector["api"], vector["kind"], vector["version"], bytes.fromhex(vector["hex"])) for vector in VECTORS
    ]
    (tmp_path / "captured").write_text("\n".join(lines))
    done = run("roundtrip", str(tmp_path / "captured"))
    assert (done.exit_code, done.stdout) == (0, f"{2 + len(VECTORS)} ok, 0 failed, 0 unknown\n")


def test_roundtrip_names_what_fails_and_why() -> None:
    lines = [
        line("Heartbeat", "request", 4, HEARTBEAT.encode(4)),
        line("Heartbeat", "request", 4, HEARTBEAT.encode(4)[:-1]),
        line("Metadata", "request", 8, bytes.fromhex("00000000 02 00 00")),
        line("Heartbeat", "request", 4, HEARTBEAT.encode(4)[:-1] + b"\x80\x00"),
        '{"api": "Heartbeat", "kind": "request", "version": 4, "hex": "0g"}',
        '{"api": "Heartbeat", "kind": "request", "version": "4", "hex": ""}',
        '{"api": "Heartbeat", "version": 4, "hex": ""}',
        "not json",
        line("Heartbeat", "request", 5, b""),
        line("NoSuchApi", "request", 0, b""),
        line("Heartbeat", "data", 0, b""),
    ]
    done = run("roundtrip", "-", stdin="\n".join(lines))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "line 2: Heartbeat request v4: failed: byte 30: the number of tagged fields needs 1 bytes, 0 left",
        "line 3: Metadata request v8: failed: byte 4 in AllowAutoTopicCreation: 02 00 00 came out as 01 00 00",
        "line 4: Heartbeat request v4: failed: byte 30: the number of tagged fields is a zero written in 2 bytes",
        'line 5: failed: not a message: "hex": non-hexadecimal number found in fromhex() arg at position 1',
        'line 6: failed: not a message: "version" should be a number',
        'line 7: failed: not a message: "kind" is missing',
        "line 8: failed: not a message: Expecting value: line 1 column 1 (char 0)",
        "1 ok, 7 failed, 3 unknown",
    ]
    verbose = run("roundtrip", "-", "--verbose", stdin="\n".join(lines))
    assert "line 10: NoSuchApi request v0: unknown: no such message" in verbose.stdout


def test_roundtrip_with_unknown_messages_only_succeeds() -> None:
    done = run("roundtrip", "-", stdin=line("Heartbeat", "request", 99, b""))
    assert (done.exit_code, done.stdout) == (0, "0 ok, 0 failed, 1 unknown\n")


# batch


def batches() -> bytes:
    table = pa.table({"key": [b"k", None, b"\xff\x00"], "value": [b"text", b"", None]})
    marker = pa.table({"key": [b"\0\0\0\1"], "value": [b"\0\0\0\0\0\5"]})
    options: dict[str, Any] = {"producer_id": 9, "producer_epoch": 1}
    return b"".join(
        [
            *encode_columns(table, compression=Compression.SNAPPY, default_timestamp=1_767_225_600_000),
            *encode_columns(table, base_offset=3, base_sequence=0, transactional=True, **options),
            *encode_columns(marker, base_offset=6, transactional=True, control=True, **options),
        ]
    )


def test_batch_prints_headers_and_records() -> None:
    done = run("batch", "-", stdin=batches())
    assert done.exit_code == 0, done.stderr
    first, second, third = json.loads(done.stdout)
    assert (first["Compression"], first["RecordCount"], first["BaseOffset"], first["LastOffset"]) == ("snappy", 3, 0, 2)
    assert first["Records"] == [
        {"Offset": 0, "Timestamp": 1_767_225_600_000, "Key": "k", "Value": "text", "Headers": []},
        {"Offset": 1, "Timestamp": 1_767_225_600_000, "Key": None, "Value": "", "Headers": []},
        {"Offset": 2, "Timestamp": 1_767_225_600_000, "KeyHex": "ff00", "Value": None, "Headers": []},
    ]
    assert (second["ProducerId"], second["IsTransactional"], second["BaseSequence"]) == (9, True, 0)
    assert third["IsControl"]
    assert third["Records"][0]["Control"] == "COMMIT"
    headers = json.loads(run("batch", "-", "--headers", stdin=batches()).stdout)
    assert [entry["Position"] for entry in headers] == [0, first["Size"], first["Size"] + second["Size"]]
    assert all("Records" not in entry for entry in headers)


def test_batch_annotates_every_byte() -> None:
    data = batches()
    done = run("batch", "-", "--annotate", stdin=data)
    assert done.exit_code == 0
    shown = done.stdout.splitlines()
    plain = shown[shown.index(next(row for row in shown if "3 records, none" in row)) + 1 :]
    digits = "".join(row[8:32].replace(" ", "") for row in plain if not row.startswith("Batch"))
    assert data.hex().endswith(digits)
    assert "Its records, decompressed: " in done.stdout
    assert "Records[2].Key" in done.stdout


def test_batch_of_nothing() -> None:
    assert json.loads(run("batch", "-", stdin=b"").stdout) == []


def test_batch_points_at_the_batch_that_is_corrupt() -> None:
    data = bytearray(batches())
    data[-1] ^= 1
    done = run("batch", "-", stdin=bytes(data))
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)) == 2  # what came before is there, and well-formed
    assert "the batch with base offset 6 at byte" in done.stderr
    assert "checksum is 0x" in done.stderr
    cut = run("batch", "-", "--annotate", stdin=batches()[:-5])
    assert cut.exit_code == 1
    assert "left" in cut.stderr


def test_batch_refuses_a_bomb() -> None:
    data = b"".join(encode_columns(pa.table({"value": [bytes(100_000)]}), compression=Compression.ZSTD))
    done = run("batch", "-", "--limit", "1000", stdin=data)
    assert done.exit_code == 1
    assert "zstd expands to more than 1000 bytes" in done.stderr
