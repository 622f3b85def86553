"""ControllerRegistration (KIP-919): controllers say where they listen and what they support.

UnregisterController removes the registration of one that will not come back.
"""

from __future__ import annotations

from ...messages.controller_registration_request import ControllerRegistrationRequest
from ...messages.controller_registration_response import ControllerRegistrationResponse
from ...messages.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from ...messages.unregister_controller_record import UnregisterControllerRecord
from ...messages.unregister_controller_request import UnregisterControllerRequest
from ...messages.unregister_controller_response import UnregisterControllerResponse
from ...metadata.versions import REGISTERED_CONTROLLERS
from ...protocol import ErrorCode
from ..state import ControllerState


def register_controller(
    state: ControllerState, body: ControllerRegistrationRequest, _version: int, _now: float
) -> ControllerRegistrationResponse:
    """Register a controller, or replace its registration."""
    if state.metadata_version < REGISTERED_CONTROLLERS:
        return ControllerRegistrationResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="The current metadata.version does not support registered controllers",
        )
    state.write(
        RegisterControllerRecord(
            controller_id=body.controller_id,
            incarnation_id=body.incarnation_id,
            zk_migration_ready=body.zk_migration_ready,
            end_points=[
                ControllerEndpoint(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in body.listeners
            ],
            features=[
                ControllerFeature(
                    name=each.name,
                    min_supported_version=each.min_supported_version,
                    max_supported_version=each.max_supported_version,
                )
                for each in body.features
            ],
        )
    )
    return ControllerRegistrationResponse(error_message=None)


def unregister_controller(
    state: ControllerState, body: UnregisterControllerRequest, _version: int, _now: float
) -> UnregisterControllerResponse:
    """Forget a controller; the active one cannot forget itself."""
    if body.controller_id == state.config.node_id:
        return UnregisterControllerResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Controller cannot unregister itself while it is active.",
        )
    if body.controller_id not in state.image.controllers:
        return UnregisterControllerResponse(
            error_code=ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            error_message=f"Controller ID {body.controller_id} is not currently registered.",
        )
    state.write(UnregisterControllerRecord(controller_id=body.controller_id))
    return UnregisterControllerResponse(error_message=None)
