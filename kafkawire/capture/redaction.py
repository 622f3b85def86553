"""Replaces fields of a message's JSON form by their length.

Law: what secrets are is said in `protocol.secrets`; this hides what the caller names.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..protocol.secrets import placeholder


def redacted(value: Any, hidden: Container[str]) -> Any:
    """Replace texts of hidden fields by their length; everything else is kept as it is."""
    if isinstance(value, dict):
        return {
            key: placeholder(len(inner), "character")
            if key in hidden and isinstance(inner, str)
            else redacted(inner, hidden)
            for key, inner in value.items()
        }
    return [redacted(inner, hidden) for inner in value] if isinstance(value, list) else value
