"""Why a record does not apply to an image."""

from __future__ import annotations

from typing import Any


class Inapplicable(Exception):
    """Why a record does not apply; `replay` adds which one, and where it is."""


def removed(values: dict[Any, Any], key: object, what: str) -> None:
    """Remove a key that has to be there."""
    if key not in values:
        raise Inapplicable(f"unknown {what} {key.hex() if isinstance(key, bytes) else key}")
    del values[key]
