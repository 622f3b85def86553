"""What the brokers of a cluster share: metadata, settings, limits, clock, deadlines, effects.

Law: it is data, and the bottom of what uses it: it refers to no broker, handler or coordinator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .bounds import Bounds
from .configs import Settings
from .deadlines import Deadlines
from .effects import Effect
from .events import Deadline
from .faults import Fault
from .releases import Offer
from .topics import Topics


class Endpoint(NamedTuple):
    """Where a broker listens."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True)
class Context:
    """What handlers, coordinators and the controller need of their cluster.

    endpoints: of all brokers, by node id. offered: the API versions that are served; listed: those
    that ApiVersions lists. new_uuid, draw, epoch_ms, load_seconds: as of `Cluster`. effects: those
    that the current call returns.
    """

    cluster_id: str
    release: str
    offered: Offer
    listed: Offer
    endpoints: Mapping[int, Endpoint]
    settings: Settings
    bounds: Bounds
    topics: Topics
    new_uuid: Callable[[], bytes]
    draw: Callable[[], float]
    epoch_ms: int = 0
    load_seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    deadlines: Deadlines[Deadline] = field(default_factory=Deadlines)
    effects: list[Effect] = field(default_factory=list)

    def wall_ms(self, now: float) -> int:
        """Return the wall-clock time in milliseconds since 1970."""
        return self.epoch_ms + int(now * 1000)

    def emit(self, effect: Effect) -> None:
        """Add an effect to those that the current call returns."""
        self.effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Return the effects of the current call, in order, and start anew."""
        effects, self.effects = self.effects, []
        return effects

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is up."""
        return node_id in self.topics.alive

    def alive_endpoints(self) -> list[Endpoint]:
        """Return the endpoints of the brokers that are up."""
        return [each for node_id, each in self.endpoints.items() if self.is_alive(node_id)]

    @property
    def controller_id(self) -> int:
        """The node id reported as controller: the lowest of those that are up."""
        return min(self.topics.alive, default=-1)
