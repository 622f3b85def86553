"""AlterClientQuotas (KIP-546): quotas of users, client ids and IP addresses.

The changes of one entity are made all together or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from math import isfinite
from typing import Final

from ...messages.alter_client_quotas_request import AlterClientQuotasRequest
from ...messages.alter_client_quotas_request import EntryData as Requested
from ...messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from ...messages.client_quota_record import ClientQuotaRecord
from ...messages.client_quota_record import EntityData as RecordedEntity
from ...metadata import QuotaEntity
from ...protocol import ErrorCode
from ..state import ControllerState
from .assignments import Refused

E = ErrorCode
RATES: Final = {
    "producer_byte_rate": int,
    "consumer_byte_rate": int,
    "request_percentage": float,
    "controller_mutation_rate": float,
}
KEYS: Final[Mapping[frozenset[str], Mapping[str, type]]] = {
    frozenset({"user"}): RATES,
    frozenset({"client-id"}): RATES,
    frozenset({"user", "client-id"}): RATES,
    frozenset({"ip"}): {"connection_creation_rate": int},
}
"""Types of an entity -> its quotas, whole numbers or not."""
TYPES: Final = frozenset().union(*KEYS)
LARGEST: Final = 2**63 - 1


def alter_client_quotas(
    state: ControllerState, body: AlterClientQuotasRequest, _version: int, _now: float
) -> AlterClientQuotasResponse:
    """Set or remove quotas of each entity."""
    entries = []
    for each in body.entries:
        error, message = E.NONE, None
        try:
            changes = _changes(each)
            if not body.validate_only:
                _write(state, each, changes)
        except Refused as refused:
            error, message = refused.error, refused.message
        entries.append(
            EntryData(
                error_code=error,
                error_message=message,
                entity=[
                    EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in each.entity
                ],
            )
        )
    return AlterClientQuotasResponse(entries=entries)


def _changes(entry: Requested) -> dict[str, float | None]:
    """Return key -> new value, None to remove it. Raises Refused."""
    types = [part.entity_type for part in entry.entity]
    keys = KEYS.get(frozenset(types))
    if keys is None or len(set(types)) != len(types):
        raise Refused(E.INVALID_REQUEST, f"Invalid client quota entity types: {types}")
    for part in entry.entity:
        if part.entity_name == "":
            raise Refused(E.INVALID_REQUEST, f"Invalid empty {part.entity_type} name")
        if part.entity_type == "ip" and part.entity_name is not None:
            _check_address(part.entity_name)
    changes: dict[str, float | None] = {}
    for op in entry.ops:
        if op.key in changes:
            raise Refused(E.INVALID_REQUEST, f"Duplicate quota key {op.key}")
        if op.key not in keys:
            raise Refused(E.INVALID_REQUEST, f"Invalid configuration key {op.key}")
        changes[op.key] = None if op.remove else _checked(op.key, op.value, keys[op.key])
    return changes


def _check_address(text: str) -> None:
    try:
        ip_address(text)
    except ValueError:
        raise Refused(E.INVALID_REQUEST, f"{text} is not a valid IP address") from None


def _checked(key: str, value: float, type: type) -> float:
    if not isfinite(value) or not 0 < value <= LARGEST:
        raise Refused(E.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    if type is int and abs(value - round(value)) > 1e-6:
        raise Refused(E.INVALID_REQUEST, f"{key} must be an integer value")
    return value


def _write(state: ControllerState, entry: Requested, changes: Mapping[str, float | None]) -> None:
    entity: QuotaEntity = frozenset((part.entity_type, part.entity_name) for part in entry.entity)
    old = dict(state.image.quotas.get(entity, {}))
    for key, value in changes.items():
        if old.get(key) == value:
            continue
        state.write(
            ClientQuotaRecord(
                entity=[
                    RecordedEntity(entity_type=part.entity_type, entity_name=part.entity_name)
                    for part in sorted(entry.entity, key=lambda part: part.entity_type)
                ],
                key=key,
                value=0.0 if value is None else value,
                remove=value is None,
            )
        )
