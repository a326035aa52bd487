"""A socket that answers real clients with messages made here: enough of a broker to be asked for its metadata."""

from __future__ import annotations

import socketserver
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from kohort.protocol.message import Request, Response
from kohort.protocol.messages import api, apis
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kohort.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.headers import RequestHeader, ResponseHeader
from kohort.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kohort.protocol.messages.metadata import MetadataRequest, MetadataResponse

ANSWERED = {3, 10, 16, 18, 60}
TOPIC = "orders"
PARTITIONS = 3


@dataclass
class Exchange:
    """A request as it came, what was left over after it, and the response as it went."""

    api: int
    version: int
    header: RequestHeader
    request: bytes
    left_over: bytes
    response: bytes


@dataclass
class ScriptedBroker:
    """Listens on a free port of 127.0.0.1 for as long as the `with` block lasts, and keeps what was said."""

    exchanges: list[Exchange] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)

    def __enter__(self) -> Self:
        broker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                try:
                    while size := self.rfile.read(4):
                        frame = self.rfile.read(int.from_bytes(size, "big"))
                        answer = broker.answer(frame)
                        self.wfile.write(len(answer).to_bytes(4, "big") + answer)
                except OSError:
                    pass  # the client has hung up
                except Exception as fault:
                    broker.faults.append(fault)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_address[1]}"

    def answer(self, frame: bytes) -> bytes:
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        entry = api(key)
        supported = version in entry.versions
        header, end = RequestHeader.read(frame, 0, entry.request_header_version(version) if supported else 1)
        if not supported:
            assert key == 18, f"{entry.name} v{version} was not offered"
            body: bytes = ApiVersionsResponse(error_code=35).encode(0)
        else:
            # As Kafka does: what follows a request in its frame is passed over.
            request, stop = entry.request.read(frame, end, version)
            body = self.respond(request).encode(version)
            self.exchanges.append(Exchange(key, version, header, frame[end:stop], frame[stop:], body))
        answer_header = ResponseHeader(correlation_id=header.correlation_id)
        return answer_header.encode(entry.response_header_version(version) if supported else 0) + body

    def respond(self, request: Request) -> Response:
        host, port = "127.0.0.1", self.server.server_address[1]
        match request:
            case ApiVersionsRequest():
                key = ApiVersionsResponse.ApiKey
                return ApiVersionsResponse(
                    api_keys=[
                        key(api_key=entry.key, min_version=entry.versions[0], max_version=entry.versions[-1])
                        for entry in apis()
                        if entry.key in ANSWERED
                    ]
                )
            case MetadataRequest():
                topic = MetadataResponse.Topic
                return MetadataResponse(
                    brokers=[MetadataResponse.Broker(node_id=1, host=host, port=port, rack="a")],
                    cluster_id="kohort",
                    controller_id=1,
                    topics=[
                        topic(
                            name=TOPIC,
                            partitions=[
                                topic.Partition(
                                    partition_index=index,
                                    leader_id=1,
                                    leader_epoch=0,
                                    replica_nodes=(1,),
                                    isr_nodes=(1,),
                                )
                                for index in range(PARTITIONS)
                            ],
                        )
                    ],
                )
            case DescribeClusterRequest():
                node = DescribeClusterResponse.Broker(broker_id=1, host=host, port=port)
                return DescribeClusterResponse(cluster_id="kohort", controller_id=1, brokers=[node])
            case FindCoordinatorRequest():
                node_ = FindCoordinatorResponse.Coordinator
                keys = request.coordinator_keys or (request.key,)
                return FindCoordinatorResponse(
                    node_id=1,
                    host=host,
                    port=port,
                    coordinators=[node_(key=name, node_id=1, host=host, port=port) for name in keys],
                )
            case ListGroupsRequest():
                group = ListGroupsResponse.Group(
                    group_id="order-processors", protocol_type="consumer", group_state="Stable", group_type="classic"
                )
                return ListGroupsResponse(groups=[group])
        raise AssertionError(f"unexpected {request!r}")
