"""What the parts of a broker share: settings, limits, clock, deadlines, effects.

It is data, and the bottom of what uses it: it refers to no broker, handler or coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .bounds import Bounds
from .configs import Settings
from .deadlines import Deadlines
from .effects import Effect
from .events import Deadline
from .faults import Fault

if TYPE_CHECKING:
    from .security.signed_tokens import KeySource


class Endpoint(NamedTuple):
    """Where a broker listens."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


def no_time() -> float:
    """Return the time of a thread in virtual time, in which all work takes none."""
    return 0.0


@dataclass(slots=True)
class Context:
    """What handlers and coordinators need of their broker.

    new_uuid: returns 16 unique bytes. draw: returns a random number in [0, 1), for faults.
    epoch_ms: milliseconds since 1970 at `now` 0. load_seconds: how long a new coordinator loads.
    reports: whether requests are reported. clock: returns the seconds that the thread has worked,
    for the quotas of request time. key_sources: of signed tokens that servers have the keys of, by
    listener. effects: those that the current call returns.
    """

    cluster_id: str
    release: str
    settings: Settings
    bounds: Bounds
    new_uuid: Callable[[], bytes]
    draw: Callable[[], float]
    epoch_ms: int = 0
    load_seconds: float = 0.0
    reports: bool = True
    faults: list[Fault] = field(default_factory=list)
    clock: Callable[[], float] = no_time
    deadlines: Deadlines[Deadline] = field(default_factory=Deadlines)
    effects: list[Any] = field(default_factory=list)
    key_sources: Mapping[str, KeySource] = field(default_factory=dict)

    def wall_ms(self, now: float) -> int:
        """Return the wall-clock time in milliseconds since 1970."""
        return self.epoch_ms + int(now * 1000)

    def emit(self, effect: Effect) -> None:
        """Add an effect to those that the current call returns."""
        self.effects.append(effect)
