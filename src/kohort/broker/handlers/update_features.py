"""UpdateFeatures: sets levels of features, such as group.version (KIP-584)."""

from __future__ import annotations

from typing import Final

from kohort.broker.authorizer import Operation
from kohort.broker.context import Context
from kohort.broker.features import FeatureUpdate, UpgradeType
from kohort.broker.handlers import ONE_STEP, Served
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

SERVED: Final = Served(UpdateFeaturesRequest, versions=(0, 2), max_items=ONE_STEP)

UPGRADE_TYPES: Final = 1
"""First version with upgrade types; before it there was a flag."""

LAST_WITH_RESULTS: Final = 1
"""Last version whose response names each feature."""


def handle(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    """Changes all levels, or none."""
    if not context.cluster_allowed(Operation.ALTER):
        return UpdateFeaturesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    updates = [_update(each, context.version) for each in request.feature_updates]
    try:
        context.broker.features.update(updates, validate_only=request.validate_only)
    except KafkaError as error:
        return UpdateFeaturesResponse(
            error_code=error.code, error_message=f"No feature was changed. {error.detail or error.code.name}"
        )
    results = request.feature_updates if context.version <= LAST_WITH_RESULTS else []
    return UpdateFeaturesResponse(
        error_message=None,
        results=[UpdateFeaturesResponse.Result(feature=each.feature, error_message=None) for each in results],
    )


def _update(update: UpdateFeaturesRequest.FeatureUpdate, version: int) -> FeatureUpdate:
    upgrade_type = update.upgrade_type
    if version < UPGRADE_TYPES:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(update.feature, update.max_version_level, upgrade_type)
