"""Merges the row of a connection from those of its chunks.

Counters are added, lists are joined, of other columns the later value counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...capture.tables import TABLES

Values = tuple[Any, ...]


def _sum(before: int, after: int) -> int:
    return before + after


def _each_once(before: list[Any], after: list[Any]) -> list[Any]:
    return list(dict.fromkeys([*before, *after]))


def _later(before: Any, after: Any) -> Any:
    return before if after is None else after


def _protocol(before: str | None, after: str | None) -> str | None:
    return "kafka" if "kafka" in (before, after) else before or after


def _versions(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_version: dict[tuple[int, int], dict[str, Any]] = {}
    for one in [*before, *after]:
        key = one["api_key"], one["api_version"]
        requests = one["requests"] + (by_version[key]["requests"] if key in by_version else 0)
        by_version[key] = {**one, "requests": requests}
    return [by_version[key] for key in sorted(by_version)]


ADDED: Final = (
    "requests",
    "responses",
    "request_bytes",
    "response_bytes",
    "gaps",
    "gap_bytes",
    "other_bytes",
    "problems",
)
MERGED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(ADDED, _sum),
    "protocol": _protocol,
    "client_ids": _each_once,
    "versions": _versions,
    "client_software_name": _later,
    "client_software_version": _later,
    "sasl_mechanism": _later,
}
"""Column -> function that merges two values; of other columns the later value counts."""

_NAMES: Final = [column.name for column in TABLES["connections"].columns]


def merged(before: Values | None, after: Values) -> Values:
    """Merge two rows of a connection."""
    if before is None:
        return after
    return tuple(
        MERGED[name](ours, theirs) if name in MERGED else theirs
        for name, ours, theirs in zip(_NAMES, before, after, strict=True)
    )
