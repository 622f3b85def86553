"""UpdateFeatures (KIP-584): changes the finalised levels of features, metadata.version first.

A level is finalised when this controller, all registered controllers and all registered
brokers support it; all updates of a request are made, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from ...configs import BROKER_CONFIGS
from ...configs.features import ELR as ELR_FEATURE
from ...messages.config_record import ConfigRecord
from ...messages.feature_level_record import FeatureLevelRecord
from ...messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from ...messages.update_features_response import UpdatableFeatureResult, UpdateFeaturesResponse
from ...metadata import METADATA_VERSION
from ...metadata.versions import CORDONED, DIRECTORIES, ELR, OLDEST, REGISTERED_CONTROLLERS
from ...protocol import ErrorCode
from ..state import MIN_ISR, ControllerState
from .alter_configs import BROKER
from .assignments import Refused

E = ErrorCode
RESULTS_UNTIL = 1
"""The last version whose response has a result per feature."""
OF_ALL = "The update failed for all features since the following feature had an error: "
CHANGES_OF_RECORDS = (8, 11, REGISTERED_CONTROLLERS, DIRECTORIES, ELR, CORDONED)
"""Levels of metadata.version with new records or fields: no downgrade to below one of them."""


class UpgradeType(IntEnum):
    """How a level may change."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(
    state: ControllerState, body: UpdateFeaturesRequest, version: int, _now: float
) -> UpdateFeaturesResponse:
    """Finalise levels of features."""
    if len({each.feature for each in body.feature_updates}) != len(body.feature_updates):
        return UpdateFeaturesResponse(
            error_code=E.INVALID_REQUEST, error_message="Duplicate feature updates."
        )
    try:
        for each in body.feature_updates:
            _check(state, each, _upgrade_type(each, version))
    except Refused as refused:
        prefix = OF_ALL if version > RESULTS_UNTIL else ""
        return UpdateFeaturesResponse(
            error_code=refused.error, error_message=prefix + refused.message
        )
    if not body.validate_only:
        for each in body.feature_updates:
            _write(state, each)
    results = [UpdatableFeatureResult(feature=each.feature) for each in body.feature_updates]
    return UpdateFeaturesResponse(
        error_message=None, results=results if version <= RESULTS_UNTIL else []
    )


def _upgrade_type(each: FeatureUpdateKey, version: int) -> int:
    if version == 0:
        return UpgradeType.UNSAFE_DOWNGRADE if each.allow_downgrade else UpgradeType.UPGRADE
    return each.upgrade_type


def _invalid(each: FeatureUpdateKey, reason: str) -> Refused:
    return Refused(
        E.INVALID_UPDATE_VERSION,
        f"Invalid update version {each.max_version_level} for feature {each.feature}. {reason}",
    )


def _check(state: ControllerState, each: FeatureUpdateKey, type: int) -> None:
    level = each.max_version_level
    current = state.image.features.get(each.feature, 0)
    if type not in list(UpgradeType):
        raise _invalid(each, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(each, "A feature version cannot be less than 0.")
    for node, (low, high) in _supported(state, each.feature):
        if not low <= level <= high:
            versions = f"only supports versions {low}-{high}"
            raise _invalid(each, f"{node} {versions if high else 'does not support this feature.'}")
    if each.feature not in state.config.features:
        raise _invalid(each, f"Feature {each.feature} not found.")
    if level < current and type == UpgradeType.UPGRADE:
        raise _invalid(
            each,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > current and type != UpgradeType.UPGRADE:
        raise _invalid(each, "Can't downgrade to a newer version.")
    lost = any(level < changed <= current for changed in CHANGES_OF_RECORDS)
    if each.feature == METADATA_VERSION and lost:
        unsafe = type == UpgradeType.UNSAFE_DOWNGRADE
        raise Refused(
            E.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. "
            + (
                "Unsafe metadata downgrade is not supported in this version."
                if unsafe
                else "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            ),
        )


def _supported(state: ControllerState, feature: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield each node with the levels that it supports."""
    yield f"Local controller {state.config.node_id}", state.config.features.get(feature, (0, 0))
    for broker in state.image.brokers.values():
        ranges = {name: (low, high) for name, low, high in broker.features}
        yield f"Broker {broker.broker_id}", ranges.get(feature, (0, 0))
    for controller in state.image.controllers.values():
        levels = {
            each.name: (each.min_supported_version, each.max_supported_version)
            for each in controller.features
        }
        yield f"Controller {controller.controller_id}", levels.get(feature, (0, 0))


def _write(state: ControllerState, each: FeatureUpdateKey) -> None:
    if each.feature == ELR_FEATURE and each.max_version_level > 0:
        for record in elr_configs(state):
            state.write(record)
    state.write(FeatureLevelRecord(name=each.feature, feature_level=each.max_version_level))


def elr_configs(state: ControllerState) -> Iterator[ConfigRecord]:
    """Make `min.insync.replicas` one value for the cluster, as ELR needs it (KIP-966)."""
    if MIN_ISR not in state.image.config(BROKER, ""):
        static = state.config.static.get(MIN_ISR) or BROKER_CONFIGS[MIN_ISR].default
        yield ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_ISR, value=static)
    for resource, values in list(state.image.configs.items()):
        if resource.type == BROKER and resource.name and MIN_ISR in values:
            yield ConfigRecord(
                resource_type=BROKER, resource_name=resource.name, name=MIN_ISR, value=None
            )


def bootstrap_levels(state: ControllerState) -> Iterator[FeatureLevelRecord]:
    """Make the records of a new cluster's features, metadata.version first."""
    levels = state.config.bootstrap
    for name in sorted(levels, key=lambda name: (name != METADATA_VERSION, name)):
        level = max(levels[name], OLDEST) if name == METADATA_VERSION else levels[name]
        if level:
            yield FeatureLevelRecord(name=name, feature_level=level)
