"""The controller of a node: the quorum controller, beside the voter that commits its records.

What the controller decides goes to the voter at the offset that it was decided for, and what
is committed comes back before anything later does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ...configs import topic_configs
from ...configs.features import controller_features
from ...controller import ControllerConfig, Effect, Event, QuorumController, RequestReceived
from ...controller.operations.served import READS, WRITES
from ...controller.placement import RandomNumbers
from ...controller.state import bootstrap_features, supported_features
from ...metadata import METADATA_VERSION, MetadataImage
from ...primitives import Message
from ..config import NodeConfig

SERVED: Final = frozenset(READS) | frozenset(WRITES)
"""The requests that an active controller serves."""


class Randomness(RandomNumbers, Protocol):
    """Where random numbers come from: a `random.Random`."""

    def random(self) -> float:
        """Return a number in [0, 1)."""


class ControllerServer:
    """The controller of a node."""

    def __init__(self, config: NodeConfig, rng: Randomness, new_uuid: Callable[[], bytes]) -> None:
        features = controller_features(config.release)
        bootstrap = bootstrap_features(features)
        if config.metadata_version is not None:
            bootstrap[METADATA_VERSION] = config.metadata_version
        settings = ControllerConfig(
            config.cluster_id,
            node_id=config.node_id,
            epoch_ms=config.epoch_ms,
            session_timeout=config.session_timeout,
            rebalance_interval=config.rebalance_interval,
            features=supported_features(features),
            bootstrap=bootstrap,
            static=config.static,
            topic_configs=topic_configs(config.release),
            max_partitions_per_request=config.bounds.partitions_per_request,
            max_partitions=config.bounds.partitions,
            zookeeper=config.zookeeper,
            scram_credentials=config.scram_credentials,
        )
        self._controller = QuorumController(settings, rng, new_uuid)

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._controller.image

    @property
    def newest(self) -> MetadataImage:
        """The metadata with what is not yet committed."""
        return self._controller.newest

    @property
    def is_active(self) -> bool:
        """Whether it decides."""
        return self._controller.is_active

    def handle(self, event: Event, now: float) -> list[Effect]:
        """Handle an event of the voter."""
        return self._controller.handle(event, now)

    def request(self, token: int, version: int, body: Message, now: float) -> list[Effect]:
        """Handle a request."""
        return self._controller.handle(RequestReceived(token, body, version), now)

    def next_deadline(self) -> float | None:
        """Return when to call `advance`."""
        return self._controller.next_deadline()

    def advance(self, now: float) -> list[Effect]:
        """Do what is due."""
        return self._controller.advance(now)
