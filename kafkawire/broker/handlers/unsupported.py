"""Builds the responses to APIs that this broker does not serve.

The connection stays open, and the client gets UNSUPPORTED_VERSION wherever the response has an
error field.

    known API          its own response, with a top-level error, or else one element with the
                       error for each element of the request
    unknown API key    correlation id │ error code: int16   (the layout of that response is unknown)
"""

from __future__ import annotations

from typing import Any

from ...messages import REGISTRY
from ...primitives import Message, Structure
from ...protocol import ErrorCode
from ...protocol.fields import Field, fields_at
from ..request import Request

ERROR = ErrorCode.UNSUPPORTED_VERSION
ERROR_FIELD = "error_code"


def unknown_key(correlation_id: int) -> bytes:
    """Build the response to a request with an unknown API key."""
    body = correlation_id.to_bytes(4, "big", signed=True) + int(ERROR).to_bytes(2, "big")
    return len(body).to_bytes(4, "big") + body


def unsupported_response(request: Request) -> Message:
    """Build the response to a request of a known API that is not served."""
    info = REGISTRY.response(request.api_key)
    assert info is not None
    response = _error_structure(REGISTRY.load(info.name), request.body, request.version)
    assert isinstance(response, Message)
    return response


def _error_structure(cls: type[Structure], requested: Structure | None, version: int) -> Structure:
    """Build a response, or an element of one, with the error.

    Fields that the request has too (names, ids) are copied.
    """
    fields = fields_at(cls, version)
    values: dict[str, Any] = {}
    has_error = any(field.attribute.endswith(ERROR_FIELD) for field in fields)
    for field in fields:
        if field.attribute.endswith(ERROR_FIELD):
            values[field.attribute] = int(ERROR)
        elif not field.is_array:
            copied = _copied(field, requested, version)
            if copied is not None:
                values[field.attribute] = copied
        elif not has_error:
            values[field.attribute] = _elements(field, requested, version)
    return cls(**values)


def _copied(field: Field, requested: Structure | None, version: int) -> Any:
    for each in () if requested is None else fields_at(type(requested), version):
        if each.attribute == field.attribute and each.has_type_of(field):
            return getattr(requested, field.attribute)
    return None


def _elements(field: Field, requested: Structure | None, version: int) -> list[Any]:
    """Build one element for each element of the first array of the request."""
    if field.struct is None or requested is None:
        return []
    for array in fields_at(type(requested), version):
        if array.is_array:
            return [
                _error_structure(
                    field.struct, each if isinstance(each, Structure) else None, version
                )
                for each in getattr(requested, array.attribute) or []
            ]
    return []
