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

from kohort import __version__
from kohort.cli.wire import app
from kohort.protocol.catalogue import all_messages
from kohort.protocol.describe import describe
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kohort.protocol.records.batch import Compression
from kohort.protocol.records.columns import encode_columns

from ..protocol.everything import message_versions
from .support import invoke

VECTORS = json.loads((Path(__file__).parents[1] / "protocol" / "vectors" / "wire.json").read_text())
HEARTBEAT = HeartbeatRequest(group_id="orders", generation_id=7, member_id="consumer-1-abc123")


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


def test_examples_of_decode_run() -> None:
    docs = [info.callback.__doc__ or "" for info in app.registered_commands if info.callback]
    examples = [row.strip() for doc in docs for row in doc.splitlines() if row.strip().startswith("kohort wire decode")]
    assert examples
    for example in examples:
        done = invoke("wire", *example.split()[2:])
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("arguments", ["--help", "--version", "wire list", "wire list --json", "wire show Heartbeat"])
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        ("> /dev/full", "error: can't write the output: No space left on device\n"),
        (">&-", "error: standard output is closed\n"),
        ("| true", ""),
    ],
)
def test_output_that_cannot_be_written(arguments: str, redirection: str, reason: str) -> None:
    script = f"set -o pipefail; {sys.executable} -m kohort.cli {arguments} {redirection}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == reason
    assert done.returncode == 1 or (not reason and not done.returncode)  # it may have been faster than `true`


def test_streams_that_are_closed() -> None:
    for rest, code in (("wire encode --api Heartbeat <&-", 1), ("wire show nope 2>&-", 2)):
        script = f"{sys.executable} -m kohort.cli {rest}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert done.stderr == ("error: standard input is closed\n" if code == 1 else "")


def test_a_terminal_without_the_characters() -> None:
    done = command("wire", "show", "Heartbeat", env=os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xb7 API 12" in done.stdout


def test_tables_are_as_wide_as_columns_says_and_keep_names_whole() -> None:
    narrow = command("wire", "show", "StreamsGroupHeartbeat", "--response", env=os.environ | {"COLUMNS": "60"})
    table = narrow.stdout.partition("Schema")[0]
    assert max(map(len, table.splitlines())) <= 60
    assert "…" not in table
    wide = command("wire", "list", env=os.environ | {"COLUMNS": "30"})
    assert "…" not in wide.stdout


# list


def test_list_has_every_api() -> None:
    done = invoke("wire", "list")
    assert done.exit_code == 0
    assert "StreamsGroupHeartbeat" in done.stdout
    rows = {row["name"]: row for row in json.loads(invoke("wire", "list", "--json").stdout)}
    assert rows["Heartbeat"] == {"key": 12, "name": "Heartbeat", "versions": [0, 4], "flexible": 4}
    assert rows["OffsetDelete"]["flexible"] is None
    assert len(rows) == 90


def test_list_data_has_what_is_no_api() -> None:
    names = {row["name"] for row in json.loads(invoke("wire", "list", "--data", "--json").stdout)}
    assert {"RequestHeader", "ConsumerProtocolSubscription", "StreamsGroupTopologyValue", "EndTxnMarker"} <= names
    assert names == {name for name in all_messages() if not name.endswith(("Request", "Response"))}


# show


def test_show_draws_header_fields_sizes_nesting_and_nullability() -> None:
    wide = os.environ | {"COLUMNS": "160"}
    done = command("wire", "show", "StreamsGroupHeartbeat", "--response", "--version", "0", env=wide)
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for wanted in (
        "StreamsGroupHeartbeatResponse v0 · API 88 · versions 0-1 · flexible",
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
    printed = invoke("wire", "show", "metadata", "--response", "-v", "12", "--format", form)
    assert printed.exit_code == 0
    path = tmp_path / "page"
    assert (
        invoke("wire", "show", "metadata", "--response", "-v", "12", "--format", form, "-o", str(path)).exit_code == 0
    )
    assert path.read_text() == printed.stdout
    assert (
        invoke("wire", "show", "metadata", "--response", "-v", "12", "--format", form, "-o", "-").stdout
        == printed.stdout
    )
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
        (["decode", "--api", "Heartbeat", ""], "the argument is empty: a file, - for standard input, or hex digits"),
        (["decode", "--api", "Heartbeat", "/"], "/ is a directory"),
        (["decode", "--api", "Hartbeat", "--header", "000c0004"], "did you mean Heartbeat?"),
        (
            ["decode", "--api", "HeartbeatResponse", "--request", "00"],
            "HeartbeatResponse is a response: leave out --req",
        ),
        (["show", "HeartbeatRequest", "--response"], "HeartbeatRequest is a request: leave out --response"),
        (["show", "99"], "there is no message '99' (see 'kohort wire list' and 'kohort wire list --data')"),
        (["encode", "--api", "Heartbeat", ""], "the name of the file is empty"),
        (["encode", "--api", "Heartbeat", "\x1b[2J\u202e"], "can't read \\x1b[2J\\u202e: No such file"),
        (["encode", "--api", "Heartbeat", "/nowhere/x"], "can't read /nowhere/x: No such file"),
        (["roundtrip", "/nowhere/x"], "can't read /nowhere/x: No such file"),
        (["batch", "/nowhere/x"], "'/nowhere/x' is neither a file nor hex digits"),
    ],
)
def test_a_call_that_cannot_be_taken_says_why(arguments: list[str], reason: str) -> None:
    done = invoke("wire", *arguments)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert done.stdout == ""


# decode, encode


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['api']}-{vector['source']}")
def test_decode_and_encode_published_examples(vector: dict[str, Any]) -> None:
    options = ["--api", vector["api"], f"--{vector['kind']}", "--version", str(vector["version"])]
    decoded = invoke("wire", "decode", *options, vector["hex"])
    assert json.loads(decoded.stdout) == vector["json"]
    encoded = invoke("wire", "encode", *options, stdin=decoded.stdout)
    assert encoded.stdout == vector["hex"] + "\n"


def test_decode_takes_files_and_standard_input_binary_or_hex(tmp_path: Path) -> None:
    raw = HEARTBEAT.encode(4)
    expected = json.loads(invoke("wire", "decode", "--api", "Heartbeat", raw.hex()).stdout)
    assert expected["GroupId"] == "orders"
    spaced = raw.hex(":", 2) + "\n"
    prefixed = "0x" + raw.hex()
    assert json.loads(invoke("wire", "decode", "--api", "Heartbeat", prefixed).stdout) == expected
    for content in (raw, raw.hex().encode(), spaced.encode(), prefixed.encode(), b"\xef\xbb\xbf" + spaced.encode()):
        (tmp_path / "message").write_bytes(content)
        assert json.loads(invoke("wire", "decode", "--api", "Heartbeat", str(tmp_path / "message")).stdout) == expected
        assert json.loads(invoke("wire", "decode", "--api", "Heartbeat", "-", stdin=content).stdout) == expected


def test_decode_reads_pipes_and_never_takes_a_path_for_hex(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'w').write({HEARTBEAT.encode(4).hex()!r})"]):
        assert json.loads(invoke("wire", "decode", "--api", "Heartbeat", str(pipe)).stdout)["GroupId"] == "orders"
    (tmp_path / "00").mkdir()
    done = command("wire", "decode", "--api", "Heartbeat", "00", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "error: 00 is a directory\n")
    odd = invoke("wire", "decode", "--api", "Heartbeat", "-", stdin="0a1")
    assert (odd.exit_code, odd.stderr) == (1, "error: standard input has 3 hex digits, an odd number\n")


def test_decode_with_header_and_frame() -> None:
    header = RequestHeader(request_api_key=12, request_api_version=3, correlation_id=42, client_id="me")
    raw = header.encode(1) + HEARTBEAT.encode(3)
    done = json.loads(invoke("wire", "decode", "--header", raw.hex()).stdout)
    assert done["header"] == {"RequestApiKey": 12, "RequestApiVersion": 3, "CorrelationId": 42, "ClientId": "me"}
    assert done["message"]["MemberId"] == "consumer-1-abc123"
    framed = len(raw).to_bytes(4, "big") + raw
    assert json.loads(invoke("wire", "decode", "--frame", "--api", "heartbeat", framed.hex()).stdout) == done
    answer = ResponseHeader(correlation_id=42).encode(1) + HeartbeatResponse(error_code=27).encode(4)
    done = json.loads(invoke("wire", "decode", "--api", "Heartbeat", "--response", "--header", answer.hex()).stdout)
    assert done == {"header": {"CorrelationId": 42}, "message": {"ThrottleTimeMs": 0, "ErrorCode": 27}}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--header", "000c0004"], "RequestHeader v2, field CorrelationId, byte 4: int32 needs 4 bytes, 0 left"),
        (["--header", "--api", "Metadata", "000c0004"], "the header says Heartbeat (API 12), not Metadata"),
        (["--header", "--version", "3", "000c0004"], "the header says version 4, not 3"),
        (["--header", "7fff0004"], "the header names API 32767, which is none"),
        (["--frame", "00000009" + "00"], "the frame says that 9 bytes follow, but 1 do: 8 missing"),
        (["--frame", "0000"], "the size of the frame needs 4 bytes, 2 are there"),
        (["--header", "000c"], "the header needs 8 bytes, 2 are there"),
        (["--header", "000c00ff00000000"], "the header asks for Heartbeat v255; known are 0 to 4"),
        (["--api", "Heartbeat", "-v", "4", "0741"], "HeartbeatRequest v4, field GroupId, byte 1: string of length 6"),
    ],
)
def test_decode_refuses_what_is_malformed(arguments: list[str], reason: str) -> None:
    done = invoke("wire", "decode", *arguments)
    assert done.exit_code == 1
    assert reason in done.stderr


def test_decode_points_at_the_offending_byte() -> None:
    raw = HEARTBEAT.encode(4)[:15]
    done = invoke("wire", "decode", "--api", "Heartbeat", raw.hex())
    lines = done.stderr.splitlines()
    mark = next(line for line in lines if "^^" in line)
    # The mark stands where byte 12 would be, after the eight columns of the offset.
    assert mark.index("^^") == 8 + 3 * 12
    assert "byte 12: string of length 17 needs 17 bytes, 3 left" in mark


def test_annotate_labels_every_byte() -> None:
    vector = VECTORS[0]
    done = invoke("wire", "decode", "--api", vector["api"], "--response", "-v", "0", "--annotate", vector["hex"])
    assert done.exit_code == 0
    digits = "".join(line[8:32].replace(" ", "") for line in done.stdout.splitlines()[1:])
    assert digits == vector["hex"]
    assert "ActiveTasks[0].Partitions[2]" in done.stdout
    assert "'NETWORK_EXCEPTION'" in done.stdout


def test_annotate_shows_what_comes_before_the_fault() -> None:
    done = invoke("wire", "decode", "--api", "Heartbeat", "--annotate", HEARTBEAT.encode(4)[:15].hex())
    assert done.exit_code == 1
    assert "GenerationId" in done.stdout
    assert "MemberId" in done.stderr


def test_a_frame_of_another_size_is_shown_as_far_as_it_goes() -> None:
    header = RequestHeader(request_api_key=12, request_api_version=4, correlation_id=1, client_id="me")
    raw = header.encode(2) + HEARTBEAT.encode(4)
    over = invoke("wire", "decode", "--frame", (len(raw).to_bytes(4, "big") + raw + b"ab").hex())
    assert over.exit_code == 1
    assert json.loads(over.stdout)["message"]["GroupId"] == "orders"
    assert "2 left over" in over.stderr
    cut = invoke("wire", "decode", "--frame", "--annotate", (len(raw).to_bytes(4, "big") + raw[:-3]).hex())
    assert cut.exit_code == 1
    assert "GenerationId" in cut.stdout
    assert cut.stderr.index("^^") < cut.stderr.index("3 missing")


def test_a_name_or_a_key_says_which_message_it_is() -> None:
    assert (
        invoke("wire", "show", "12").stdout
        == invoke("wire", "show", "Heartbeat").stdout
        == invoke("wire", "show", "HeartbeatRequest").stdout
    )
    response = HeartbeatResponse(error_code=27).encode(4).hex()
    for options in (["HeartbeatResponse"], ["heartbeatresponse", "--response"], ["12", "--response"]):
        assert json.loads(invoke("wire", "decode", "--api", *options, response).stdout)["ErrorCode"] == 27
    answer = ResponseHeader(correlation_id=42).encode(1).hex() + response
    done = invoke("wire", "decode", "--api", "HeartbeatResponse", "--header", answer)
    assert json.loads(done.stdout)["header"] == {"CorrelationId": 42}


def test_json_does_not_turn_the_terminal_round() -> None:
    text = "a\u202eb\x9b\x7fc é"
    done = invoke("wire", "decode", "--api", "Heartbeat", HeartbeatRequest(group_id=text).encode(4).hex())
    assert json.loads(done.stdout)["GroupId"] == text
    assert '"a\\u202eb\\u009b\\u007fc é"' in done.stdout


def test_encode_shows_the_surroundings_of_a_syntax_error() -> None:
    done = invoke("wire", "encode", "--api", "Heartbeat", stdin='{"GroupId": "' + "x" * 500 + '" \x1b oops' + " " * 500)
    shown, mark = done.stderr.splitlines()[1:]
    assert len(shown) < 70
    assert shown[mark.index("^") :].startswith("\\x1b oops")


def test_encode_fills_in_defaults() -> None:
    done = invoke("wire", "encode", "--api", "Heartbeat", "-v", "4", stdin='{"groupId": "orders"}')
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
        ("\ufeff{", "not JSON: line 1, column 2"),
        ("", "not JSON: standard input is empty"),
        ("[" * 100_000, "not a message"),
        ("9" * 5000, "not a message"),
    ],
)
def test_encode_points_at_the_json_path(text: str, reason: str) -> None:
    done = invoke("wire", "encode", "--api", "ShareGroupDescribe", "--response", "-v", "1", stdin=text)
    assert done.exit_code == 1
    assert reason in (
        done.stderr if "has no such field" not in reason else done.stderr.replace("GroupId: ", "MembrId: ")
    )
    assert "Traceback" not in done.stderr


def test_encode_says_when_a_version_lacks_the_field() -> None:
    done = invoke("wire", "encode", "--api", "Heartbeat", "-v", "2", stdin='{"GroupInstanceId": "me"}')
    assert done.exit_code == 1
    assert "GroupInstanceId: set to 'me', but this version has no such field" in done.stderr


def test_encode_refuses_text_that_is_not_utf_8() -> None:
    done = invoke("wire", "encode", "--api", "Heartbeat", stdin=b'{"GroupId": "\xff"}')
    assert done.exit_code == 1
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
    done = invoke("wire", "roundtrip", str(tmp_path / "captured"))
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
        line("Heartbeat", "Request", 0, b""),
    ]
    done = invoke("wire", "roundtrip", "-", stdin="\n".join(lines))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "line 2: Heartbeat request v4: failed: byte 30: the number of tagged fields needs 1 bytes, 0 left",
        "line 3: Metadata request v8: failed: byte 4 in AllowAutoTopicCreation: 02 00 00 came out as 01 00 00",
        "line 4: Heartbeat request v4: failed: byte 30: the number of tagged fields is a zero written in 2 bytes",
        'line 5: failed: not a message: "hex": non-hexadecimal number found in fromhex() arg at position 1',
        'line 6: failed: not a message: "version" should be a number',
        'line 7: failed: not a message: "kind" is missing',
        "line 8: failed: not a message: Expecting value: line 1 column 1 (char 0)",
        'line 12: failed: not a message: "kind" should be request, response, header or data',
        "1 ok, 8 failed, 3 unknown",
    ]
    verbose = invoke("wire", "roundtrip", "-", "--verbose", stdin="\n".join(lines))
    assert "line 10: NoSuchApi request v0: unknown: no such message" in verbose.stdout


def test_roundtrip_takes_lines_as_they_end_in_a_file() -> None:
    text = '{"api": "Heartbeat", "note": "\u2028\x85", "kind": "request", "version": 99, "hex": ""}\r\n'
    done = invoke("wire", "roundtrip", "-", stdin=text)
    assert (done.exit_code, done.stdout) == (0, "0 ok, 0 failed, 1 unknown\n")
    assert invoke("wire", "roundtrip", "-", stdin=b"\xff").exit_code == 1


def test_roundtrip_with_unknown_messages_only_succeeds() -> None:
    done = invoke("wire", "roundtrip", "-", stdin=line("Heartbeat", "request", 99, b""))
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
    done = invoke("wire", "batch", "-", stdin=batches())
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
    headers = json.loads(invoke("wire", "batch", "-", "--headers", stdin=batches()).stdout)
    assert [entry["Position"] for entry in headers] == [0, first["Size"], first["Size"] + second["Size"]]
    assert all("Records" not in entry for entry in headers)


def test_batch_annotates_every_byte() -> None:
    data = batches()
    done = invoke("wire", "batch", "-", "--annotate", stdin=data)
    assert done.exit_code == 0
    shown = done.stdout.splitlines()
    plain = shown[shown.index(next(row for row in shown if "3 records, none" in row)) + 1 :]
    digits = "".join(row[8:32].replace(" ", "") for row in plain if not row.startswith("Batch"))
    assert data.hex().endswith(digits)
    assert "Its records, decompressed: " in done.stdout
    assert "Records[2].Key" in done.stdout


def test_batch_of_nothing() -> None:
    assert json.loads(invoke("wire", "batch", "-", stdin=b"").stdout) == []


def test_batch_points_at_the_batch_that_is_corrupt() -> None:
    data = bytearray(batches())
    data[-1] ^= 1
    done = invoke("wire", "batch", "-", stdin=bytes(data))
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)) == 2  # what came before is there, and well-formed
    assert "the batch with base offset 6 at byte" in done.stderr
    assert "checksum is 0x" in done.stderr


def test_batch_passes_over_a_batch_that_is_cut_off_and_over_zeros() -> None:
    whole = batches()
    last = json.loads(invoke("wire", "batch", "-", stdin=whole).stdout)[-1]["Position"]
    for left in (1, 12, 17, 60, len(whole) - last - 1):
        cut = invoke("wire", "batch", "-", stdin=whole[: last + left])
        assert (cut.exit_code, len(json.loads(cut.stdout))) == (0, 2)
        assert cut.stderr.startswith(f"note: the last batch is cut off: {left} ")
        assert f"at byte {last}" in cut.stderr
    for annotate in ([], ["--annotate"]):
        padded = invoke("wire", "batch", "-", *annotate, stdin=whole + bytes(5000))
        assert padded.exit_code == 0
        assert f"note: 5000 bytes of zeros at byte {len(whole)}" in padded.stderr


@pytest.mark.parametrize(("at", "field"), [(16, 16), (17, 17), (60, 17), (11, 8)])
def test_batch_points_at_the_field_at_fault(at: int, field: int) -> None:
    data = bytearray(encode_columns(pa.table({"value": [b"x"]}))[0])
    data[at] = data[at] ^ 1 if at != 11 else 0
    done = invoke("wire", "batch", "-", "--annotate", stdin=bytes(data))
    assert done.exit_code == 1
    assert f"^^ byte {field}: " in done.stderr
    shown = "".join(row[8:32].replace(" ", "") for row in done.stdout.splitlines()[1:])
    assert shown == data[:61].hex()  # the header all the same


def test_batch_headers_are_shown_without_decompressing() -> None:
    data = b"".join(encode_columns(pa.table({"value": [bytes(100_000)]}), compression=Compression.ZSTD))
    for annotate in ([], ["--annotate"]):
        done = invoke("wire", "batch", "-", "--headers", "--limit", "1", *annotate, stdin=data)
        assert done.exit_code == 0
        assert "RecordCount" in done.stdout


def test_batch_takes_several_lines_for_text() -> None:
    data = encode_columns(pa.table({"key": [b"a\x1b"], "value": ["two\nlines\t\u202e".encode()]}))[0]
    done = invoke("wire", "batch", "-", stdin=data)
    assert "\u202e" not in done.stdout
    (record,) = json.loads(done.stdout)[0]["Records"]
    assert (record["KeyHex"], record["Value"]) == ("611b", "two\nlines\t\u202e")


def test_batch_refuses_a_bomb() -> None:
    data = b"".join(encode_columns(pa.table({"value": [bytes(100_000)]}), compression=Compression.ZSTD))
    done = invoke("wire", "batch", "-", "--limit", "1000", stdin=data)
    assert done.exit_code == 1
    assert "zstd expands to more than 1000 bytes" in done.stderr
