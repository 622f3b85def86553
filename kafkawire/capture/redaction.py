"""Credentials, replaced by their length.

Law: what proves who somebody is leaves this package only where the caller asks for it.
"""

from __future__ import annotations

from typing import Any

from ..protocol.json_text import CREDENTIALS


def redacted(value: Any) -> Any:
    """Replace credentials by their length; everything else is kept as it is."""
    if isinstance(value, dict):
        return {
            key: f"(redacted, {len(inner)} characters)"
            if key in CREDENTIALS and isinstance(inner, str)
            else redacted(inner)
            for key, inner in value.items()
        }
    return [redacted(inner) for inner in value] if isinstance(value, list) else value
