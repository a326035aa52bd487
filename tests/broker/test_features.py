"""Features: levels that are changed, kept and replayed."""

from __future__ import annotations

import pytest

from kohort.broker.features import NEW_RECORDS, SUPPORTED, Features, FeatureUpdate, UpgradeType
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.stored.cluster_metadata import FeatureLevelRecord, MetadataRecord

OFF = FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)
ON = FeatureUpdate("group.version", 1, UpgradeType.UPGRADE)
HIGHEST = {name: levels.highest for name, levels in SUPPORTED.items()}


@pytest.fixture
def records() -> list[MetadataRecord]:
    return []


@pytest.fixture
def features(records: list[MetadataRecord]) -> Features:
    return Features(records.extend)


def test_every_feature_is_on_in_a_new_cluster(features: Features) -> None:
    assert features.finalized() == HIGHEST
    assert features.epoch == 0


def test_a_feature_goes_off_and_on_again(features: Features) -> None:
    features.update([OFF])
    assert features.level("group.version") == 0
    assert "group.version" not in features.finalized()
    features.update([ON])
    assert features.level("group.version") == 1
    assert features.epoch == 2


def test_replaying_gives_the_same_levels_and_epoch(features: Features, records: list[MetadataRecord]) -> None:
    first = FeatureLevelRecord(name="metadata.version", feature_level=29)
    features.replay(first)
    features.update([OFF, FeatureUpdate("share.version", 1, UpgradeType.UNSAFE_DOWNGRADE)])
    features.update([ON])
    restarted = Features(records.extend)
    for record in [first, *records]:
        restarted.replay(record)
    assert restarted.finalized() == features.finalized() == {**HIGHEST, "metadata.version": 29, "share.version": 1}
    assert restarted.epoch == features.epoch


def test_a_level_of_a_newer_broker_counts_as_the_highest_known(features: Features) -> None:
    features.replay(FeatureLevelRecord(name="share.version", feature_level=9))
    assert features.level("share.version") == HIGHEST["share.version"]


def test_what_is_only_validated_changes_nothing(features: Features, records: list[MetadataRecord]) -> None:
    features.update([OFF], validate_only=True)
    assert features.level("group.version") == 1
    assert not records


def test_the_same_level_again_writes_nothing(features: Features, records: list[MetadataRecord]) -> None:
    features.update([ON])
    assert not records


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (FeatureUpdate("no.version", 1, 1), "there is no such feature"),
        (FeatureUpdate("group.version", 2, 1), "its levels are 0 to 1"),
        (FeatureUpdate("group.version", -1, 2), "its levels are 0 to 1"),
        (FeatureUpdate("kraft.version", 0, 3), "never goes down"),
        (FeatureUpdate("metadata.version", 31, 1), "its levels are 7 to 30"),
        (FeatureUpdate("metadata.version", 0, 3), "its levels are 7 to 30"),
        (FeatureUpdate("metadata.version", 29, 1), "the request is an upgrade"),
        (FeatureUpdate("metadata.version", 29, 2), "not even an unsafe downgrade"),
        (FeatureUpdate("metadata.version", 29, 3), "not even an unsafe downgrade"),
        (FeatureUpdate("group.version", 0, 1), "the request is an upgrade"),
        (FeatureUpdate("group.version", 0, 0), "none of the upgrade types"),
        (FeatureUpdate("group.version", 0, 4), "none of the upgrade types"),
    ],
)
def test_a_bad_update_changes_none(
    features: Features, records: list[MetadataRecord], update: FeatureUpdate, reason: str
) -> None:
    with pytest.raises(KafkaError, match=reason) as caught:
        features.update([FeatureUpdate("share.version", 1, UpgradeType.SAFE_DOWNGRADE), update])
    assert caught.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert not records
    assert features.finalized() == HIGHEST


def test_a_downgrade_does_not_raise_a_level(features: Features) -> None:
    features.update([OFF])
    with pytest.raises(KafkaError, match="the request is a downgrade"):
        features.update([FeatureUpdate("group.version", 1, UpgradeType.SAFE_DOWNGRADE)])


def test_a_failed_append_changes_nothing() -> None:
    def fail(records: list[MetadataRecord]) -> None:
        del records
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    features = Features(fail)
    with pytest.raises(KafkaError):
        features.update([OFF])
    assert features.level("group.version") == 1


@pytest.mark.parametrize(
    ("level", "to", "possible"),
    [(29, 23, True), (29, 22, False), (26, 25, True), (23, 22, False), (12, 11, True), (30, 30, True)],
)
def test_the_metadata_version_goes_down_as_far_as_records_are_the_same(
    level: int, to: int, possible: bool, features: Features, records: list[MetadataRecord]
) -> None:
    features.replay(FeatureLevelRecord(name="metadata.version", feature_level=level))
    update = FeatureUpdate("metadata.version", to, UpgradeType.SAFE_DOWNGRADE)
    if possible:
        features.update([update])
    else:
        with pytest.raises(KafkaError, match="whose metadata can't be read below"):
            features.update([update])
    assert features.level("metadata.version") == (to if possible else level)


def test_an_older_metadata_version_goes_up(features: Features, records: list[MetadataRecord]) -> None:
    features.replay(FeatureLevelRecord(name="metadata.version", feature_level=29))
    features.update([FeatureUpdate("metadata.version", 30, UpgradeType.UPGRADE)])
    assert records == [FeatureLevelRecord(name="metadata.version", feature_level=30)]


def test_every_level_with_new_records_is_one_of_the_metadata_version() -> None:
    lowest, highest = SUPPORTED["metadata.version"]
    assert all(lowest <= level <= highest for level in NEW_RECORDS)
