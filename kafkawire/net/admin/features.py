"""Features of the cluster: their levels are raised, lowered, disabled (KIP-584, KIP-778)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from ...client.arguments import INT16, text, whole
from ...client.requests import CONTROLLER
from ...errors import InvalidValue
from ...messages.api_key import ApiKey
from ...messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from ...messages.update_features_response import UpdateFeaturesResponse
from ...primitives import Message
from .calls import CallRunner, check

Change = Literal["UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]
CHANGES: Final[Mapping[str, int]] = {"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3}
TYPES_FROM: Final = 1
"""UpdateFeatures has types of changes, and `validate_only`, from this version on."""


async def update(
    calls: CallRunner,
    levels: Mapping[str, int],
    change: Change,
    timeout_ms: int,
    *,
    validate_only: bool,
) -> None:
    """Finalize features at levels. BrokerError for the first that the controller refuses."""
    if change not in CHANGES:
        raise InvalidValue(f"{change!r}: expected one of {', '.join(CHANGES)}", "change")
    checked = {
        text(name, "levels key"): whole(level, f"levels[{name!r}]", 0, INT16)
        for name, level in levels.items()
    }
    needs_types = validate_only or change == "UNSAFE_DOWNGRADE"

    def make(version: int) -> Message:
        has_types = version >= TYPES_FROM
        updates = [
            FeatureUpdateKey(
                feature=name,
                max_version_level=level,
                **(
                    {"upgrade_type": CHANGES[change]}
                    if has_types
                    else {"allow_downgrade": change != "UPGRADE"}
                ),
            )
            for name, level in checked.items()
        ]
        return UpdateFeaturesRequest(
            timeout_ms=timeout_ms, feature_updates=updates, validate_only=validate_only
        )

    response = await calls.call(
        CONTROLLER,
        ApiKey.UPDATE_FEATURES,
        UpdateFeaturesResponse,
        make,
        lambda response: [response.error_code, *(row.error_code for row in response.results)],
        lowest=TYPES_FROM if needs_types else 0,
    )
    for row in response.results:
        check(row.error_code, f"feature {row.feature}", row.error_message)
    check(response.error_code, "features", response.error_message)
