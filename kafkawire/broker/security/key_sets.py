"""Reads the keys of signed tokens from a file, again when it has changed, as Kafka does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .signed_tokens import public_keys

if TYPE_CHECKING:
    from joserfc.jwk import Key


LARGEST: Final = 1 << 20
"""Bytes of a key set."""


class KeyFile:
    """The keys in a file."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._state: tuple[int, ...] = ()
        """What a change of the file, or another one in its place, changes."""
        self._keys: Sequence[Key] = ()

    def current(self) -> Sequence[Key]:
        """Return the keys of the file as it is now. Raises ValueError, MissingPackage."""
        try:
            state = self._path.stat()
            now = (state.st_mtime_ns, state.st_size, state.st_ino)
            if now != self._state:
                if state.st_size > LARGEST:
                    raise ValueError(f"more than {LARGEST} bytes")
                self._keys = public_keys(self._path.read_bytes())
                self._state = now
        except OSError as error:
            raise ValueError(error.strerror) from None
        return self._keys

    def missing(self, key_id: str) -> None:
        """Do nothing: a file that has changed would have been read."""


class UnknownKeys:
    """The keys of a server from which nobody fetches them."""

    def current(self) -> Sequence[Key]:
        """Raise ValueError."""
        raise ValueError("not fetched")

    def missing(self, key_id: str) -> None:
        """Do nothing."""
