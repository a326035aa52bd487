"""UpdateFeatures: what is switched off is refused at once, also after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kohort.broker import metadata_log
from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.broker.features import UpgradeType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.update_features import UpdateFeaturesRequest
from kohort.protocol.stored.cluster_metadata import FeatureLevelRecord
from tests.broker.handlers.conftest import QUICK, Ask, Deny, asker

Update = UpdateFeaturesRequest.FeatureUpdate
OFF = Update(feature="streams.version", max_version_level=0, upgrade_type=UpgradeType.SAFE_DOWNGRADE)


@pytest.mark.parametrize(("version", "named"), [(0, ["streams.version"]), (1, ["streams.version"]), (2, [])])
def test_a_feature_is_switched_off(version: int, named: list[str], ask: Ask, broker: Broker) -> None:
    update = OFF if version else Update(feature="streams.version", max_version_level=0, allow_downgrade=True)
    response = ask(UpdateFeaturesRequest(feature_updates=[update]), version)
    assert response.error_code == 0
    assert [result.feature for result in response.results] == named
    assert broker.features.level("streams.version") == 0
    (group,) = ask(StreamsGroupDescribeRequest(group_ids=["g"])).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_change_that_is_only_checked(ask: Ask, broker: Broker) -> None:
    response = ask(UpdateFeaturesRequest(feature_updates=[OFF], validate_only=True), 2)
    assert response.error_code == 0
    assert broker.features.level("streams.version") == 1


def test_an_old_client_has_to_allow_a_downgrade(ask: Ask) -> None:
    request = UpdateFeaturesRequest(feature_updates=[Update(feature="streams.version", max_version_level=0)])
    response = ask(request, 0)
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "No feature was changed" in response.error_message
    assert "streams.version" in response.error_message
    assert response.results == []


def test_who_may_not_alter_the_cluster_changes_nothing(ask: Ask, broker: Broker, deny: Deny) -> None:
    deny(Operation.ALTER)
    response = ask(UpdateFeaturesRequest(feature_updates=[OFF]), 2)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert broker.features.level("streams.version") == 1


def test_a_data_directory_of_before_is_upgraded_and_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = FeatureLevelRecord(name="metadata.version", feature_level=29)
    up = Update(feature="metadata.version", max_version_level=30, upgrade_type=UpgradeType.UPGRADE)

    async def life(*updates: Update) -> list[int]:
        broker = Broker.build(Settings.of(QUICK), data_dir=tmp_path)
        await broker.start()
        levels = [broker.features.level("metadata.version")]
        for update in updates:
            assert asker(broker)(UpdateFeaturesRequest(feature_updates=[update])).error_code == ErrorCode.NONE
            levels.append(broker.features.level("metadata.version"))
        await broker.stop()
        return levels

    with monkeypatch.context() as patched:
        patched.setattr(metadata_log, "LEVEL", before)
        assert asyncio.run(life()) == [29]
    assert asyncio.run(life(up)) == [29, 30]
    assert asyncio.run(life()) == [30]
