"""UpdateFeatures: API 57."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class UpdateFeaturesRequest(Request, key=57, versions="0-2", flexible=0):
    """Raises, lowers or removes the cluster-wide levels of features such as metadata.version.

    - v1: UpgradeType in place of AllowDowngrade; ValidateOnly
    - v2: same bytes; the response has no outcome per feature
    """

    class FeatureUpdate(Struct):
        """New level of one feature."""

        feature: str = string("Feature to change, such as metadata.version.")
        max_version_level: int = int16("Level to settle on from now on; below 1 removes the feature.")
        allow_downgrade: bool = boolean("True if the level may go down or the feature be removed.", until=0)
        upgrade_type: int = int8(
            "1 = upgrade, 2 = downgrade without loss, 3 = downgrade that may lose data.", since=1, default=1
        )

    timeout_ms: int = int32("How long the controller may take over the request, in ms.", default=60000)
    feature_updates: list[FeatureUpdate] = array(FeatureUpdate, "Features to change, each with its new level.")
    validate_only: bool = boolean("True to check the changes without applying them.", since=1)


class UpdateFeaturesResponse(Response, key=57, versions="0-2", flexible=0):
    """Says whether the feature levels were changed.

    - v2: no Results: one error for all features
    """

    class Result(Struct):
        feature: str = string("Feature this outcome is about.")
        error_code: int = int16("0, or why this feature keeps its level.")
        error_message: str | None = string(
            "Why it failed, for people; null without an error.", nullable=True, default=""
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.")
    error_message: str | None = string("What went wrong, for people; null without an error.", nullable=True, default="")
    results: list[Result] = array(Result, "One outcome per feature.", until=1, ignorable=True)
