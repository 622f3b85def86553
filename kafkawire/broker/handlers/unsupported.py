"""Builds the responses to APIs that this broker does not serve.

Law: the connection stays open, and the client gets UNSUPPORTED_VERSION wherever the response has an
error field.

    known API          its own response, with a top-level error, or else one element with the
                       error for each element of the request
    unknown API key    correlation id │ error code: int16   (the layout of that response is unknown)
"""

from __future__ import annotations

import sys
from typing import Any

from ...messages import REGISTRY
from ...primitives import Message, Structure
from ...primitives.structure import FieldRow
from ...protocol import ErrorCode
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
    made = _error_structure(REGISTRY.load(info.name), request.body, request.version)
    assert isinstance(made, Message)
    return made


def _error_structure(cls: type[Structure], requested: Structure | None, version: int) -> Structure:
    """Build a response, or an element of one, with the error.

    Fields that the request has too (names, ids) are copied.
    """
    rows = [row for row in cls.__fields__ if row.first <= version <= row.last]
    values: dict[str, Any] = {}
    has_error = any(row.attribute.endswith(ERROR_FIELD) for row in rows)
    for row in rows:
        if row.attribute.endswith(ERROR_FIELD):
            values[row.attribute] = int(ERROR)
        elif not row.type.startswith("[]"):
            copied = _copied(row, requested, version)
            if copied is not None:
                values[row.attribute] = copied
        elif not has_error:
            values[row.attribute] = _elements(cls, row, requested, version)
    return cls(**values)


def _copied(row: FieldRow, requested: Structure | None, version: int) -> Any:
    for field in () if requested is None else requested.__fields__:
        if field.attribute == row.attribute and field.type == row.type:
            return (
                getattr(requested, row.attribute) if field.first <= version <= field.last else None
            )
    return None


def _elements(
    cls: type[Structure], row: FieldRow, requested: Structure | None, version: int
) -> list[Any]:
    """Build one element for each element of the first array of the request."""
    struct = getattr(sys.modules[cls.__module__], row.type.removeprefix("[]"), None)
    if struct is None or requested is None:
        return []
    for field in requested.__fields__:
        if field.type.startswith("[]") and field.first <= version <= field.last:
            elements = getattr(requested, field.attribute) or []
            return [
                _error_structure(struct, each if isinstance(each, Structure) else None, version)
                for each in elements
            ]
    return []
