"""A broker that says what a test makes it say; by itself, it describes a group that counts words."""

from __future__ import annotations

import contextlib
import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import Any

from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request, Response
from kohort.protocol.messages import api
from kohort.protocol.messages.api_versions import ApiVersionsResponse
from kohort.protocol.messages.describe_configs import DescribeConfigsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorResponse
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.streams_group_describe import (
    Assignment,
    KeyValue,
    StreamsGroupDescribeResponse,
    TaskIds,
    TaskOffset,
    TopicInfo,
)

Described = StreamsGroupDescribeResponse.Group
Answer = Response | bytes | Callable[[], Response]
"""What a request is answered with; bytes are sent as they are, and the connection closed."""

SPOKEN = {3: (0, 13), 10: (0, 6), 18: (0, 4), 32: (1, 4), 89: (0, 1)}


def tasks(**partitions: tuple[int, ...]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in partitions.items()]


def offsets(**by_partition: dict[int, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=name, partition=partition, offset=offset)
        for name, numbers in by_partition.items()
        for partition, offset in numbers.items()
    ]


def described(**changes: Any) -> Described:
    """Two instances that count words; the second one is warming up a task."""
    part = Described.Topology.Subtopology
    parts = [
        part(subtopology_id="split", source_topics=("lines", "letters"), repartition_sink_topics=("words",)),
        part(
            subtopology_id="count",
            repartition_source_topics=[TopicInfo(name="words", partitions=4)],
            state_changelog_topics=[TopicInfo(name="counts-changelog"), TopicInfo(name="tops-changelog")],
        ),
    ]
    members = [
        Described.Member(
            member_id="m1",
            process_id="p1",
            client_tags=[KeyValue(key="zone", value="a")],
            assignment=Assignment(
                active_tasks=tasks(split=(0, 1), count=(0, 1, 2)), standby_tasks=tasks(count=(3,), gone=(0,))
            ),
            task_offsets=offsets(count={0: -2, 3: 60}),
            task_end_offsets=offsets(count={0: 500, 3: 90}),
        ),
        Described.Member(
            member_id="m2",
            process_id="p2",
            assignment=Assignment(
                active_tasks=tasks(split=(2,), count=(3,)),
                standby_tasks=tasks(count=(0,)),
                warmup_tasks=tasks(count=(1,)),
            ),
            task_offsets=offsets(count={0: 510, 1: 7}),
            task_end_offsets=offsets(count={3: 100}),
        ),
    ]
    whole = {
        "group_id": "words",
        "group_state": "Stable",
        "topology": Described.Topology(epoch=0, subtopologies=parts),
        "members": members,
    }
    return Described(**(whole | changes))


class Broker:
    """Answers each API with what it was told to, any number of times; a list, one after the other."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        broker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                broker.serve(self.rfile, self.wfile)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port: int = self.server.server_address[1]
        self.address = "127.0.0.1", self.port
        self.name = f"127.0.0.1:{self.port}"
        topics = {"lines": 2, "letters": 3, "words": 4}
        configs = {
            "streams.num.standby.replicas": "1",
            "streams.rack.aware.assignment.tags": "zone, rack",
            "streams.acceptable.recovery.lag": "20",
        }
        self.answers: dict[int, Answer | list[Answer]] = {
            18: ApiVersionsResponse(
                api_keys=[
                    ApiVersionsResponse.ApiKey(api_key=key, min_version=least, max_version=most)
                    for key, (least, most) in SPOKEN.items()
                ]
            ),
            10: self.coordinator(self.port),
            3: MetadataResponse(topics=[topic(name, count) for name, count in topics.items()]),
            32: DescribeConfigsResponse(
                results=[
                    DescribeConfigsResponse.Result(
                        resource_type=32,
                        resource_name="words",
                        configs=[
                            DescribeConfigsResponse.Result.Config(name=key, value=value)
                            for key, value in configs.items()
                        ],
                    )
                ]
            ),
            89: StreamsGroupDescribeResponse(groups=[described()]),
        }

    @staticmethod
    def coordinator(port: int, error: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse:
        found = FindCoordinatorResponse.Coordinator(key="words", host="127.0.0.1", port=port, error_code=error)
        return FindCoordinatorResponse(coordinators=[found])

    def describes(self, group: Described) -> None:
        self.answers[89] = StreamsGroupDescribeResponse(groups=[group])

    def serve(self, received: Any, sent: Any) -> None:
        while size := received.read(4):
            data = received.read(int.from_bytes(size, "big"))
            which, version = api(int.from_bytes(data[:2], "big")), int.from_bytes(data[2:4], "big")
            header, end = RequestHeader.read(data, 0, which.request_header_version(version))
            self.asked.append(which.request.decode(data[end:], version))
            answer = self.answers[which.key]
            if isinstance(answer, list):
                answer = answer.pop(0) if len(answer) > 1 else answer[0]
            if isinstance(answer, bytes):
                sent.write(answer)
                return
            response = answer if isinstance(answer, Response) else answer()
            told = ResponseHeader(correlation_id=header.correlation_id)
            whole = told.encode(which.response_header_version(version)) + response.encode(version)
            sent.write(len(whole).to_bytes(4, "big") + whole)


def topic(name: str, partitions: int, error: ErrorCode = ErrorCode.NONE) -> MetadataResponse.Topic:
    numbers = [MetadataResponse.Topic.Partition(partition_index=number) for number in range(partitions)]
    return MetadataResponse.Topic(name=name, partitions=numbers, error_code=error)


@contextlib.contextmanager
def running() -> Iterator[Broker]:
    """A broker, served in a thread."""
    broker = Broker()
    thread = threading.Thread(target=broker.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield broker
    finally:
        broker.server.shutdown()
        thread.join()
        broker.server.server_close()
