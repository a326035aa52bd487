"""`kohort place --from-group`: groups out of a broker that says what a test makes it say."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.cli.placing.group_file import read_group
from kohort.cli.placing.live_group import read_live_group
from kohort.cli.placing.wire import BrokerError, parse_address
from kohort.coordinator.placement import Group, Member, SubtopologyTasks, TaskId
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Response
from kohort.protocol.messages.api_versions import ApiVersionsResponse
from kohort.protocol.messages.describe_configs import DescribeConfigsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse

from .place_broker import Broker, Described, described, running, topic
from .test_place import lines, run


@pytest.fixture
def broker() -> Iterator[Broker]:
    with running() as broker:
        yield broker


def read(broker: Broker, seconds: float = 10) -> Group:
    return read_live_group(broker.address, "words", seconds)[0]


def refused(broker: Broker, seconds: float = 10) -> str:
    with pytest.raises(BrokerError) as caught:
        read(broker, seconds)
    return str(caught.value)


# what is read


def test_a_live_group(broker: Broker) -> None:
    count = [TaskId("count", partition) for partition in range(4)]
    split = [TaskId("split", partition) for partition in range(3)]
    assert read(broker) == Group(
        subtopologies=(SubtopologyTasks("split", 3), SubtopologyTasks("count", 4, 2)),
        members=(
            Member("m1", "p1", {"zone": "a"}, frozenset({*split[:2], *count[:3]}), frozenset({count[3]})),
            Member("m2", "p2", {}, frozenset({split[2], count[3]}), frozenset({count[0], count[1]})),
        ),
        standbys=1,
        rack_tags=("zone", "rack"),
        lags={("p1", count[3]): 40, ("p2", count[0]): 0},
        ends={count[0]: 500, count[3]: 100},
        acceptable_lag=20,
    )


def test_it_is_placed_like_a_file_and_saved(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "words.yaml"
    done = run("--from-group", broker.name, "words", "--what-if", "add=1", "--save", str(path))
    assert done.exit_code == 0
    assert lines(done.stdout)["active tasks of a member"][:2] == ["2 to 5, 1 out of balance", "2 to 3"]
    assert read_group(path.read_text(), "words.yaml") == read(broker)
    assert run(str(path), "--what-if", "add=1").stdout == done.stdout


def test_nothing_is_changed_at_the_broker(broker: Broker) -> None:
    read(broker)
    names = [request.__message__.api for request in broker.asked]
    asks_about_topics = next(request for request in broker.asked if request.__message__.key == 3)
    assert set(names) == {"ApiVersions", "FindCoordinator", "StreamsGroupDescribe", "Metadata", "DescribeConfigs"}
    assert asks_about_topics.allow_auto_topic_creation is False  # type: ignore[attr-defined]


def test_a_configuration_that_may_not_be_read(broker: Broker) -> None:
    result = DescribeConfigsResponse.Result(resource_type=32, resource_name="words", error_code=30, error_message="no")
    broker.answers[32] = DescribeConfigsResponse(results=[result])
    done = run("--from-group", broker.name, "words")
    assert done.exit_code == 0
    assert done.stderr == (
        "note: the group's configuration can't be read (GROUP_AUTHORIZATION_FAILED (30): no): "
        "taken for Kafka's defaults\n"
    )
    group, _ = read_live_group(broker.address, "words", 10)
    assert (group.standbys, group.rack_tags, group.acceptable_lag) == (0, (), 10_000)


def test_a_group_that_everybody_left(broker: Broker) -> None:
    broker.describes(described(members=[], group_state="Empty"))
    done = run("--from-group", broker.name, "words")
    assert done.exit_code == 1
    assert done.stderr == (
        "note: the group is Empty: nobody is in it\n"
        "error: there are 7 tasks, and no member to run any; --what-if add=1 adds one\n"
    )


def test_the_coordinator_may_be_another_broker(broker: Broker) -> None:
    with running() as other:
        broker.answers[10] = broker.coordinator(other.port)
        broker.answers[89] = b""
        assert read(broker).standbys == 1
    assert 89 not in {request.__message__.key for request in broker.asked}


@pytest.mark.parametrize(
    "error", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE]
)
def test_a_coordinator_that_loads_is_waited_for(broker: Broker, error: ErrorCode) -> None:
    loading = StreamsGroupDescribeResponse(groups=[Described(group_id="words", error_code=error)])
    broker.answers[89] = [loading, StreamsGroupDescribeResponse(groups=[described()])]
    broker.answers[10] = [
        broker.coordinator(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        broker.coordinator(broker.port),
    ]
    assert read(broker).standbys == 1


# what is said when it can't be


@pytest.mark.parametrize(
    ("error", "detail", "said"),
    [
        (ErrorCode.GROUP_ID_NOT_FOUND, None, "there is no streams group words at {}"),
        (
            ErrorCode.GROUP_ID_NOT_FOUND,
            "not a streams group",
            "there is no streams group words at {} (not a streams group)",
        ),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, None, "{} doesn't describe words: GROUP_AUTHORIZATION_FAILED (30)"),
        (9999, "new", "{} doesn't describe words: UNKNOWN_SERVER_ERROR (-1): code 9999: new"),
    ],
)
def test_a_group_that_is_not_described(broker: Broker, error: int, detail: str | None, said: str) -> None:
    broker.describes(Described(group_id="words", error_code=int(error), error_message=detail))
    done = run("--from-group", broker.name, "words")
    assert (done.exit_code, done.stderr) == (3, f"error: {said.format(broker.name)}\n")


def test_a_topology_that_cannot_run(broker: Broker) -> None:
    broker.describes(described(topology=Described.Topology(epoch=0, subtopologies=None), group_state="NotReady"))
    assert refused(broker) == "words has no topology that can run (NotReady): are its source topics there?"
    broker.describes(described(topology=None, group_state="NotReady"))
    assert "no topology that can run" in refused(broker)


def test_a_source_topic_that_is_missing(broker: Broker) -> None:
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.answers[3] = MetadataResponse(topics=[topic("lines", 2), topic("letters", 0, missing), topic("words", 4)])
    assert refused(broker) == "words can't run: there is no topic letters"


def test_a_topic_that_may_not_be_described(broker: Broker) -> None:
    broker.answers[3] = MetadataResponse(topics=[topic("lines", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)])
    assert refused(broker) == (
        f"{broker.name} doesn't say how many partitions topic lines has: TOPIC_AUTHORIZATION_FAILED (29)"
    )


def test_a_broker_that_knows_no_streams_groups(broker: Broker) -> None:
    broker.answers[18] = ApiVersionsResponse(api_keys=[])
    assert refused(broker) == f"{broker.name} doesn't know streams groups: Kafka does from 4.1 on"


def test_a_broker_that_lacks_what_is_needed(broker: Broker) -> None:
    spoken = ApiVersionsResponse.ApiKey(api_key=89, min_version=0, max_version=0)
    broker.answers[18] = ApiVersionsResponse(api_keys=[spoken])
    assert refused(broker) == f"{broker.name} doesn't speak FindCoordinator in a version that Kohort does"
    broker.answers[18] = ApiVersionsResponse(
        api_keys=[spoken, ApiVersionsResponse.ApiKey(api_key=10, min_version=0, max_version=2)]
    )
    assert refused(broker).startswith(f"{broker.name} can't be asked for FindCoordinator v2: ")


@pytest.mark.parametrize("group", ["\udcff", "g" * 40_000])
def test_a_group_that_cannot_be_asked_for(broker: Broker, group: str) -> None:
    done = run("--from-group", broker.name, group)
    assert done.exit_code == 3
    assert done.stderr.startswith(f"error: {broker.name} can't be asked for FindCoordinator v6: ")


def test_a_broker_that_refuses_the_first_question(broker: Broker) -> None:
    broker.answers[18] = b"\0\0\0\x0a" + b"\0\0\0\1" + b"\0\x23" + b"\0\0\0\0"  # error 35, in version 0
    assert refused(broker) == f"{broker.name} refuses ApiVersions v3: UNSUPPORTED_VERSION (35)"


def test_answers_about_nothing(broker: Broker) -> None:
    broker.answers[89] = StreamsGroupDescribeResponse(groups=[])
    assert refused(broker) == f"{broker.name} says nothing about words"
    broker.answers[10] = FindCoordinatorResponse(coordinators=[])
    assert refused(broker) == f"{broker.name} says nothing about the coordinator of words"


def test_nobody_may_know_the_coordinator(broker: Broker) -> None:
    broker.answers[10] = broker.coordinator(-1, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert refused(broker).startswith(f"{broker.name} doesn't say who coordinates words: GROUP_AUTHORIZATION_FAILED")


def test_a_group_as_it_cannot_be(broker: Broker) -> None:
    twice = [Described.Member(member_id="m1", process_id="p1")] * 2
    broker.describes(described(members=twice))
    assert refused(broker) == f"{broker.name} describes words as it can't be: members: 'm1' is there twice"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", "closes the connection during ApiVersions; a listener with TLS or SASL does that"),
        (b"\0\0\0\x10\0\0", "closes the connection 14 bytes before the end of its answer during ApiVersions"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "but not in Kafka's protocol: is it a Kafka broker"),
        (b"\x15\x03\x03\0\x02\x02\x0a", "but not in Kafka's protocol"),
        (b"\0\0\0\x05\0\0\0\1\0", "answers ApiVersions with bytes that aren't right: ApiVersionsResponse v3"),
        (b"\0\0\0\x02\0\0", "answers ApiVersions with bytes that aren't right: ResponseHeader v0"),
        (b"\0\0\0\x08\0\0\0\x09\0\0\0\0", "answers ApiVersions with the answer to another request"),
    ],
)
def test_answers_that_are_none(broker: Broker, sent: bytes, said: str) -> None:
    broker.answers[18] = sent
    assert said in refused(broker)


def test_a_broker_that_does_not_answer(broker: Broker) -> None:
    answered = threading.Event()

    def late() -> Response:
        answered.wait(10)
        return StreamsGroupDescribeResponse(groups=[])

    broker.answers[89] = late
    said = refused(broker, seconds=0.3)
    answered.set()
    assert said.startswith(f"{broker.name}: out of time waiting for its answer to ")
    assert said.endswith("; --timeout gives it more")


def test_a_coordinator_that_never_loads(broker: Broker) -> None:
    broker.describes(Described(group_id="words", error_code=14))
    assert ": out of time waiting for " in refused(broker, seconds=0.5)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = run("--from-group", f"127.0.0.1:{port}", "words")
    assert done.exit_code == 3
    assert done.stderr == (
        f"error: 127.0.0.1:{port} can't be reached (Connection refused): does a broker listen there?\n"
    )


def test_the_coordinator_cannot_be_reached(broker: Broker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    broker.answers[10] = broker.coordinator(port)
    assert refused(broker) == (
        f"127.0.0.1:{port} can't be reached (Connection refused): does a broker listen there? "
        f"({broker.name} says that it coordinates words)"
    )


def test_there_is_no_such_host() -> None:
    done = run("--from-group", "no-such-host.invalid:9092", "words")
    assert done.exit_code == 3
    assert done.stderr.startswith("error: no-such-host.invalid:9092: there is no such host (")


@pytest.mark.parametrize(
    ("text", "address"),
    [("localhost:9092", ("localhost", 9092)), ("[::1]:1", ("::1", 1)), ("10.0.0.1:65535", ("10.0.0.1", 65535))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "host", ":9092", "::1:9092", "host:0", "host:65536", "host:a", "[::1]"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT is needed"):
        parse_address(text)
