"""BrokerRegistration and UnregisterBroker: brokers come, and are forgotten.

A broker id belongs to one incarnation as long as its session lasts; a new incarnation begins
fenced and out of every ISR, with a new epoch.
"""

from __future__ import annotations

from ...messages.broker_registration_request import BrokerRegistrationRequest
from ...messages.broker_registration_response import BrokerRegistrationResponse
from ...messages.unregister_broker_record import UnregisterBrokerRecord
from ...messages.unregister_broker_request import UnregisterBrokerRequest
from ...messages.unregister_broker_response import UnregisterBrokerResponse
from ...metadata import METADATA_VERSION, BrokerRegistration, Endpoint
from ...metadata.registrations import is_reserved
from ...metadata.snapshot import registration_record
from ...metadata.versions import DIRECTORIES, OLDEST
from ...protocol import ErrorCode
from ..partition_change import leave_isr, lose_records
from ..state import ControllerState

E = ErrorCode


def register(
    state: ControllerState, body: BrokerRegistrationRequest, _version: int, now: float
) -> BrokerRegistrationResponse:
    """Register a broker, or amend the registration of its present incarnation."""
    error = _error(state, body, now)
    if error is not E.NONE:
        return BrokerRegistrationResponse(error_code=error)
    old = state.image.brokers.get(body.broker_id)
    if old is not None and old.incarnation_id == body.incarnation_id:
        registration = _registration(state, body, old.epoch)._replace(
            fenced=old.fenced, in_controlled_shutdown=old.in_controlled_shutdown
        )
    else:
        _shut_down(state, body.broker_id, old, body.previous_broker_epoch)
        state.sessions.remove(body.broker_id)
        registration = _registration(state, body, state.next_offset)
    state.write(registration_record(registration))
    state.sessions.touch(body.broker_id, now)
    return BrokerRegistrationResponse(broker_epoch=registration.epoch)


def _error(state: ControllerState, body: BrokerRegistrationRequest, now: float) -> ErrorCode:
    old = state.image.brokers.get(body.broker_id)
    if body.cluster_id != state.config.cluster_id:
        return E.INCONSISTENT_CLUSTER_ID
    if body.is_migrating_zk_broker:
        return E.BROKER_ID_NOT_REGISTERED
    if _is_taken(state, old, body, now):
        return E.DUPLICATE_BROKER_REGISTRATION
    if state.metadata_version >= DIRECTORIES and not _directories_valid(state, body):
        return E.INVALID_REGISTRATION
    return E.NONE if _features_supported(state, body) else E.UNSUPPORTED_VERSION


def _is_taken(
    state: ControllerState,
    old: BrokerRegistration | None,
    body: BrokerRegistrationRequest,
    now: float,
) -> bool:
    """Return whether another incarnation, which did not say that it shuts down, has a session."""
    if old is None or old.incarnation_id == body.incarnation_id or old.in_controlled_shutdown:
        return False
    return state.sessions.is_live(body.broker_id, now)


def _directories_valid(state: ControllerState, body: BrokerRegistrationRequest) -> bool:
    directories = set(body.log_dirs)
    if (
        not directories
        or len(directories) != len(body.log_dirs)
        or any(map(is_reserved, directories))
    ):
        return False
    others = (each for key, each in state.image.brokers.items() if key != body.broker_id)
    return not any(directories.intersection(each.directories) for each in others)


def _features_supported(state: ControllerState, body: BrokerRegistrationRequest) -> bool:
    ranges = {each.name: each for each in body.features}
    for name, level in state.image.features.items():
        versions = ranges.get(name)
        absent = (OLDEST, OLDEST) if name == METADATA_VERSION else (0, 0)
        low, high = absent
        if versions is not None:
            low, high = versions.min_supported_version, versions.max_supported_version
        if not low <= level <= high:
            return False
    return True


def _registration(
    state: ControllerState, body: BrokerRegistrationRequest, epoch: int
) -> BrokerRegistration:
    directories = state.metadata_version >= DIRECTORIES
    return BrokerRegistration(
        body.broker_id,
        body.incarnation_id,
        epoch,
        tuple(
            Endpoint(each.name, each.host, each.port, each.security_protocol)
            for each in body.listeners
        ),
        tuple(
            (each.name, each.min_supported_version, each.max_supported_version)
            for each in body.features
        ),
        body.rack,
        directories=tuple(body.log_dirs) if directories else (),
    )


def _shut_down(
    state: ControllerState, broker_id: int, old: BrokerRegistration | None, previous_epoch: int
) -> None:
    """Take the incarnation before out of ISRs, and out of ELRs if it may have lost records."""
    indexes = state.image.indexes
    clean = old is not None and previous_epoch == old.epoch
    if clean or not state.elr_enabled:
        leave_isr(state, indexes.isr.of(broker_id), broker_id)
        return
    lose_records(state, indexes.isr.of(broker_id), broker_id)
    lose_records(state, indexes.elr.of(broker_id), broker_id)


def unregister(
    state: ControllerState, body: UnregisterBrokerRequest, _version: int, _now: float
) -> UnregisterBrokerResponse:
    """Forget a broker; its replicas stay assigned to its id."""
    broker = state.image.brokers.get(body.broker_id)
    if broker is None:
        return UnregisterBrokerResponse(
            error_code=E.BROKER_ID_NOT_REGISTERED,
            error_message=f"Broker ID {body.broker_id} is not currently registered",
        )
    leave_isr(state, state.image.indexes.isr.of(body.broker_id), body.broker_id)
    lose_records(state, state.image.indexes.elr.of(body.broker_id), body.broker_id)
    state.write(UnregisterBrokerRecord(broker_id=body.broker_id, broker_epoch=broker.epoch))
    state.sessions.remove(body.broker_id)
    return UnregisterBrokerResponse()
