"""Notes which brokers respond, and to requests of which APIs."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

NONE: Final = frozenset[int | None]()


class Responding:
    """The APIs of the responses of each broker. Memory grows with brokers and their APIs."""

    def __init__(self) -> None:
        self._apis: dict[str, set[int | None]] = {}

    def add(self, broker: str, api_key: int | None) -> None:
        """Note a response of a broker."""
        self._apis.setdefault(broker, set()).add(api_key)

    def __contains__(self, broker: str | None) -> bool:
        return broker in self._apis

    def apis(self, broker: str | None) -> AbstractSet[int | None]:
        """Return the API keys of a broker's responses."""
        return NONE if broker is None else self._apis.get(broker, NONE)
