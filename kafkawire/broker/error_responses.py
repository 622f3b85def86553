"""Answers to what this broker does not serve.

Law: the connection is kept, and the client gets UNSUPPORTED_VERSION wherever the answer has room
for an error.

    known API          its own answer, with the error at the top, or else one element for each
                       element that was asked for
    unknown API key    correlation id │ error code: int16   (nobody knows that answer's layout)
"""

from __future__ import annotations

import sys
from typing import Any

from ..messages import REGISTRY
from ..primitives import Message, Structure
from ..primitives.structure import FieldRow
from ..protocol import ErrorCode
from .request import Request

ERROR = ErrorCode.UNSUPPORTED_VERSION
ERROR_FIELD = "error_code"


def unknown_key(correlation_id: int) -> bytes:
    """Answer a request whose key no API has."""
    body = correlation_id.to_bytes(4, "big", signed=True) + int(ERROR).to_bytes(2, "big")
    return len(body).to_bytes(4, "big") + body


def refusal(request: Request) -> Message:
    """Answer a request of an API that is known and not served."""
    info = REGISTRY.response(request.api_key)
    assert info is not None
    made = _refused(REGISTRY.load(info.name), request.body, request.version)
    assert isinstance(made, Message)
    return made


def _refused(cls: type[Structure], asked: Structure | None, version: int) -> Structure:
    """Make an answer, or an element of one, that says the error.

    What it has in common with what was asked (names, ids) is copied.
    """
    rows = [row for row in cls.__fields__ if row.first <= version <= row.last]
    given: dict[str, Any] = {}
    has_error = any(row.attribute.endswith(ERROR_FIELD) for row in rows)
    for row in rows:
        if row.attribute.endswith(ERROR_FIELD):
            given[row.attribute] = int(ERROR)
        elif not row.type.startswith("[]"):
            copied = _copied(row, asked, version)
            if copied is not None:
                given[row.attribute] = copied
        elif not has_error:
            given[row.attribute] = _elements(cls, row, asked, version)
    return cls(**given)


def _copied(row: FieldRow, asked: Structure | None, version: int) -> Any:
    for there in () if asked is None else asked.__fields__:
        if there.attribute == row.attribute and there.type == row.type:
            return getattr(asked, row.attribute) if there.first <= version <= there.last else None
    return None


def _elements(
    cls: type[Structure], row: FieldRow, asked: Structure | None, version: int
) -> list[Any]:
    """Make an element for each that was asked for, in the first array of the request."""
    struct = getattr(sys.modules[cls.__module__], row.type.removeprefix("[]"), None)
    if struct is None or asked is None:
        return []
    for there in asked.__fields__:
        if there.type.startswith("[]") and there.first <= version <= there.last:
            elements = getattr(asked, there.attribute) or []
            return [
                _refused(struct, each if isinstance(each, Structure) else None, version)
                for each in elements
            ]
    return []
