"""What a broker needs of its key stores and trust stores, which are files."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from .settings import Settings


class Stores(Protocol):
    """The stores of the listeners of one broker."""

    def problem(self, settings: Settings, changed: Collection[str]) -> str | None:
        """Return why stores cannot be used, None if they can.

        settings: with the changed keys.
        """

    def renew(self, settings: Settings) -> None:
        """Read the files again, for connections that begin from now on."""


class NoStores:
    """Those of a broker without TLS."""

    def problem(self, _settings: Settings, _changed: Collection[str]) -> str | None:
        """Return None: nothing is read."""
        return None

    def renew(self, settings: Settings) -> None:
        """Read nothing."""
