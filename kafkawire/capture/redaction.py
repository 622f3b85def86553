"""Replaces fields of a message's JSON form by their length.

`protocol.secrets` defines what is secret; this module hides the fields that the caller names.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..protocol.secrets import placeholder


def redacted(value: Any, hidden: Container[str]) -> Any:
    """Replace the text of hidden fields by its length."""
    if isinstance(value, dict):
        return {
            key: placeholder(len(field), "character")
            if key in hidden and isinstance(field, str)
            else redacted(field, hidden)
            for key, field in value.items()
        }
    return [redacted(field, hidden) for field in value] if isinstance(value, list) else value
