"""DescribeClientQuotas: lists the quotas of entities, from the metadata that was published last.

v0   the first
v1   flexible
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...controller.operations.assignments import Refused
from ...controller.operations.client_quotas import TYPES
from ...messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from ...messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ...metadata import MetadataImage
from ...protocol import ErrorCode
from ..broker import Broker
from ..network.connection import Connection
from ..request import Request

E = ErrorCode
EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2
"""How a component of a filter matches: this name, the default, or any."""


def handle(
    broker: Broker,
    _request: Request,
    body: DescribeClientQuotasRequest,
    _connection: Connection,
    _now: float,
) -> DescribeClientQuotasResponse:
    """Describe quotas, or an error if the filter is not valid."""
    return describe_client_quotas(broker.image, body)


def error_response(
    _body: DescribeClientQuotasRequest, error: ErrorCode
) -> DescribeClientQuotasResponse:
    """Return a response with the error."""
    return DescribeClientQuotasResponse(error_code=error, error_message=error.name)


def describe_client_quotas(
    image: MetadataImage, body: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Find the quotas of the entities that all components of a filter match."""
    try:
        wanted = _components(body.components)
    except Refused as refused:
        return DescribeClientQuotasResponse(
            error_code=refused.error, error_message=refused.message, entries=None
        )
    entries = [
        EntryData(
            entity=[
                EntityData(entity_type=type, entity_name=name) for type, name in sorted(entity)
            ],
            values=[ValueData(key=key, value=value) for key, value in values.items()],
        )
        for entity, values in image.quotas.items()
        if _selected(dict(entity), wanted, body.strict)
    ]
    return DescribeClientQuotasResponse(entries=entries)


def _components(filters: list[ComponentData]) -> dict[str, ComponentData]:
    """Return the components of a filter by type. Raises Refused."""
    components: dict[str, ComponentData] = {}
    for each in filters:
        type = each.entity_type
        if not type:
            raise Refused(E.INVALID_REQUEST, "Invalid empty entity type.")
        if type in components:
            message = f"Entity type {type} cannot appear more than once in the filter."
            raise Refused(E.INVALID_REQUEST, message)
        if type not in TYPES:
            raise Refused(E.UNSUPPORTED_VERSION, f"Unsupported entity type {type}")
        if each.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise Refused(E.INVALID_REQUEST, f"Unknown match type {each.match_type}")
        if each.match_type != SPECIFIED and (each.match is None) != (each.match_type == DEFAULT):
            raise Refused(E.INVALID_REQUEST, f"{type} has no name to match, or one too many.")
        components[type] = each
    if "ip" in components and len(components) > 1:
        message = (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
        raise Refused(E.INVALID_REQUEST, message)
    return components


def _selected(
    entity: Mapping[str, str | None], wanted: Mapping[str, ComponentData], strict: bool
) -> bool:
    """Whether a filter matches an entity. strict: which has no other components."""
    if strict and len(entity) != len(wanted):
        return False
    return all(
        type in entity and (each.match_type == SPECIFIED or entity[type] == each.match)
        for type, each in wanted.items()
    )
