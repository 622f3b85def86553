"""Client quotas: limits of users, client ids and addresses (KIP-546).

An entity has one or two parts: a user, a client id, both, or an address.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from ....client.arguments import text
from ....client.requests import LEAST_LOADED
from ....errors import InvalidValue
from ....messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from ....messages.alter_client_quotas_response import AlterClientQuotasResponse
from ....messages.api_key import ApiKey
from ....messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from ....messages.describe_client_quotas_response import DescribeClientQuotasResponse
from ..calls import CallRunner, check
from .values import DEFAULT_ENTITY, QuotaEntity, QuotaFilter

TYPES: Final = {"user": "user", "client_id": "client-id", "ip": "ip"}
"""Fields of an entity -> entity types of requests."""
FIELDS: Final = {kind: field for field, kind in TYPES.items()}
EXACT: Final = 0
DEFAULT: Final = 1
ANY: Final = 2
"""How a filter matches an entity of a type: by name, the default, any."""


async def describe(calls: CallRunner, matching: QuotaFilter) -> dict[QuotaEntity, dict[str, float]]:
    """Return the quotas that a filter matches."""
    if not isinstance(matching, QuotaFilter):
        raise InvalidValue(f"expected QuotaFilter, got {type(matching).__name__}", "matching")
    components = [*_components(matching)]
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        DescribeClientQuotasResponse,
        lambda _: DescribeClientQuotasRequest(components=components, strict=matching.strict),
        lambda response: [response.error_code],
    )
    check(response.error_code, "quotas", response.error_message)
    quotas = {
        QuotaEntity(
            **{
                FIELDS[part.entity_type]: (
                    DEFAULT_ENTITY if part.entity_name is None else part.entity_name
                )
                for part in entry.entity
                if part.entity_type in FIELDS
            }
        ): {value.key: value.value for value in sorted(entry.values, key=lambda row: row.key)}
        for entry in response.entries or ()
    }
    return dict(sorted(quotas.items(), key=lambda item: _order(item[0])))


def _order(entity: QuotaEntity) -> tuple[str, ...]:
    return tuple(part or "" for part in entity)


def _components(matching: QuotaFilter) -> Iterator[ComponentData]:
    for field, kind in TYPES.items():
        value: object = getattr(matching, field)
        if field in matching.any_of:
            yield ComponentData(entity_type=kind, match_type=ANY, match=None)
        elif value == DEFAULT_ENTITY:
            yield ComponentData(entity_type=kind, match_type=DEFAULT, match=None)
        elif value is not None:
            name = text(value, f"matching.{field}")
            yield ComponentData(entity_type=kind, match_type=EXACT, match=name)


async def alter(
    calls: CallRunner,
    changes: Mapping[QuotaEntity, Mapping[str, float | None]],
    *,
    validate_only: bool,
) -> None:
    """Set and remove quotas. BrokerError for the first entity that is refused."""
    entries = [
        EntryData(entity=_entity(entity), ops=[_operation(*change) for change in of.items()])
        for entity, of in changes.items()
    ]
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.ALTER_CLIENT_QUOTAS,
        AlterClientQuotasResponse,
        lambda _: AlterClientQuotasRequest(entries=entries, validate_only=validate_only),
        lambda response: [row.error_code for row in response.entries],
    )
    for row in response.entries:
        parts = [
            f"{part.entity_type} {'default' if part.entity_name is None else part.entity_name}"
            for part in row.entity
        ]
        check(row.error_code, ", ".join(parts), row.error_message)


def _entity(entity: QuotaEntity) -> list[EntityData]:
    if not isinstance(entity, QuotaEntity):
        raise InvalidValue(f"expected QuotaEntity, got {type(entity).__name__}", "changes key")
    parts = [(field, getattr(entity, field)) for field in TYPES]
    return [
        EntityData(
            entity_type=TYPES[field],
            entity_name=None if name == DEFAULT_ENTITY else text(name, f"changes key.{field}"),
        )
        for field, name in parts
        if name is not None
    ]


def _operation(key: str, value: float | None) -> OpData:
    name = text(key, "quota")
    if value is None:
        return OpData(key=name, value=0.0, remove=True)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(f"expected a number, got {type(value).__name__}", name)
    if not math.isfinite(value):
        raise InvalidValue(f"expected a finite number, got {value}", name)
    return OpData(key=name, value=float(value), remove=False)
