"""What share groups need of the share coordinators: states to set up, to delete, to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Then = Callable[[Any, float], None]
"""Called with the result of a share partition, which has an error code, and the time."""


class Persister(Protocol):
    """The way to the share coordinators; `then` is called once, perhaps at once."""

    def initialize(
        self,
        group_id: str,
        partition: tuple[bytes, int],
        state_epoch: int,
        start_offset: int,
        then: Then,
        now: float,
        /,
    ) -> None:
        """Set up the state of a share partition. start_offset: -1 leaves it open."""

    def delete(
        self, group_id: str, partition: tuple[bytes, int], then: Then, now: float, /
    ) -> None:
        """Delete the state of a share partition."""

    def summarize(
        self, group_id: str, partition: tuple[bytes, int], then: Then, now: float, /
    ) -> None:
        """Read the start offset of a share partition."""
