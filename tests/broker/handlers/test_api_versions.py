"""ApiVersions: APIs, their versions, and features."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest

from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.broker.features import FeatureUpdate, UpgradeType
from kohort.broker.server import Server
from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.handlers.conftest import QUICK, Ask, asker
from tests.broker.handlers.served import Run, answer_of
from tests.broker.handlers.telemetry import get, subscribe
from tests.broker.raw import RawClient

VERSIONS = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


@pytest.mark.parametrize(
    ("version", "levels"), [(3, [(7, 30)]), (4, [(7, 30), (0, 1), (0, 1), (0, 1), (0, 2), (0, 1), (0, 2)])]
)
def test_old_clients_hear_of_no_feature_that_begins_at_0(
    with_server: Run, version: int, levels: list[tuple[int, int]]
) -> None:
    response = answer_of(
        with_server, ApiVersionsRequest(client_software_name="c", client_software_version="1"), version
    )
    assert [(feature.min_version, feature.max_version) for feature in response.supported_features] == levels


def test_tells_what_it_serves(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        response = await client.call(VERSIONS)
        served = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
        assert served[12] == (0, 4)
        assert served[0] == (0, 13)  # for older librdkafka, though the first three aren't served
        assert served[68] == (0, 1)
        assert 4 not in served
        assert served[88][0] == 0
        assert {feature.name: feature.max_version_level for feature in response.finalized_features} == {
            "metadata.version": 30,
            "kraft.version": 1,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "share.version": 2,
            "streams.version": 1,
            "transaction.version": 2,
        }
        await client.close()

    with_server(test)


def test_tells_which_features_are_off(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        server.broker.features.update([FeatureUpdate("streams.version", 0, UpgradeType.SAFE_DOWNGRADE)])
        response = await client.call(VERSIONS)
        assert "streams.version" not in {feature.name for feature in response.finalized_features}
        assert "streams.version" in {feature.name for feature in response.supported_features}
        assert response.finalized_features_epoch == 2  # after the metadata version, the first record
        await client.close()

    with_server(test)


def offered(ask: Ask) -> set[int]:
    """The APIs of client metrics that clients are told of."""
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    return {key.api_key for key in ask(request).api_keys} & {71, 72}


def test_apis_of_client_metrics_are_offered_while_there_is_a_subscription(ask: Ask, broker: Broker) -> None:
    assert offered(ask) == set()
    subscribe(broker, "one", metrics="a")
    assert offered(ask) == {71, 72}
    broker.topics.set_configs(ConfigResource.CLIENT_METRICS, "one", {"metrics": None})
    assert offered(ask) == set()
    assert get(ask).requested_metrics == ()  # of a client that was offered them before


def test_a_subscription_of_before_a_restart_counts(tmp_path: Path) -> None:
    first = Broker.build(Settings.of(QUICK), data_dir=tmp_path)
    subscribe(first, "one", metrics="a")
    asyncio.run(first.stop())
    second = Broker.build(Settings.of(QUICK), data_dir=tmp_path)

    async def told() -> set[int]:
        await second.start()
        found = offered(asker(second))
        await second.stop()
        return found

    assert asyncio.run(told()) == {71, 72}


def test_everything_it_tells_of_has_a_handler(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        for key in (await client.call(VERSIONS)).api_keys:
            for version in range(key.min_version or 3 * (key.api_key == 0), key.max_version + 1):
                assert server.dispatcher.route(key.api_key, version) is not None
        await client.close()

    with_server(test)


def test_api_versions_from_the_future_are_answered_in_v0(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        body = struct.pack(">hhih", 18, 99, 7, -1) + b"\0whatever"
        client.writer.write(struct.pack(">i", len(body)) + body)
        answer = await client.receive_bytes()
        assert struct.unpack_from(">i", answer)[0] == 7
        response = ApiVersionsResponse.decode(answer[4:], 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert {key.api_key for key in response.api_keys} & {18, 71} == {18}
        await client.close()

    with_server(test)


@pytest.mark.parametrize("name", ["", "-raw", "ra w"])
def test_a_client_that_does_not_say_who_it_is(name: str, ask: Ask) -> None:
    response = ask(ApiVersionsRequest(client_software_name=name, client_software_version="1"))
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])


@pytest.mark.parametrize(
    ("cluster", "node", "version", "code"),
    [
        (None, -1, 5, ErrorCode.NONE),
        (None, 7, 5, ErrorCode.NONE),
        ("ours", 1, 5, ErrorCode.NONE),
        ("ours", 2, 5, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("ours", -1, 5, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("theirs", 1, 5, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("theirs", 1, 4, ErrorCode.NONE),
    ],
)
def test_a_client_that_means_another_node_starts_anew(
    cluster: str | None, node: int, version: int, code: ErrorCode, ask: Ask, broker: Broker
) -> None:
    request = ApiVersionsRequest(
        client_software_name="c",
        client_software_version="1",
        cluster_id=broker.cluster_id if cluster == "ours" else cluster,
        node_id=node,
    )
    assert ask(request, version).error_code == code
