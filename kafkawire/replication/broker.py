"""What the replicas of a broker share: who it is, its configuration, the metadata.

The image is only read; it changes between two events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ..metadata import MetadataDelta, MetadataImage, topic_value
from .config import ReplicationConfig
from .log.replica_log import NO_EPOCH

MIN_ISR: Final = "min.insync.replicas"


@dataclass(slots=True)
class Broker:
    """What the replicas of a broker share: its id and epoch, its configuration, its metadata."""

    broker_id: int
    config: ReplicationConfig
    epoch: int = NO_EPOCH
    image: MetadataImage = field(default_factory=MetadataImage)
    _min_insync_replicas: dict[str, int] = field(default_factory=dict)

    def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Take over newer metadata."""
        self.image = image
        if delta.configs:
            self._min_insync_replicas.clear()

    def min_insync_replicas(self, topic: str) -> int:
        """Return min.insync.replicas of a topic."""
        count = self._min_insync_replicas.get(topic)
        if count is None:
            static = self.config.static
            count = int(topic_value(self.image, topic, MIN_ISR, static, str(self.broker_id)))
            self._min_insync_replicas[topic] = count
        return count
