"""The types of keys and values, and the functions that make bytes of them and of bytes.

A function gets the topic and the headers of the record beside its key or value. Null stays
null: functions are not called for it.

    key, value ─▶ Serializer ─▶ bytes ─▶ record ─▶ bytes ─▶ Deserializer ─▶ key, value
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from ..records import Headers

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    KeyT = TypeVar("KeyT", default=bytes)
    ValueT = TypeVar("ValueT", default=bytes)
else:  # types without arguments are those of bytes (PEP 696), which checkers alone need to know
    from typing import TypeVar

    KeyT = TypeVar("KeyT")
    ValueT = TypeVar("ValueT")

T = TypeVar("T")

Serializer: TypeAlias = Callable[[str, Headers, T], bytes | None]
"""(topic, headers, key or value) -> bytes, or None for null."""
Deserializer: TypeAlias = Callable[[str, Headers, bytes], T]
"""(topic, headers, bytes) -> key or value."""

KEY: Final = "key"
VALUE: Final = "value"
"""The parts of a record that are serialized, in errors."""


def reason_of(error: Exception) -> str:
    """Describe an exception of a user's function."""
    return f"{type(error).__name__}: {error}"
