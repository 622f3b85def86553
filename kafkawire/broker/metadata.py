"""The metadata of a cluster in memory: its brokers and its topics.

Law: all brokers of the cluster share it, so none of them is ever behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..configs.features import TRANSACTIONS, UNSERVED, Feature
from .context import Endpoint
from .topics import Topics


class ClusterMetadata:
    """The brokers by node id, and the topics. offset: the end offset of the metadata log.

    elected: the controller that a cluster with ZooKeeper elected; None without ZooKeeper.
    """

    def __init__(self, endpoints: Sequence[Endpoint], topics: Topics) -> None:
        self.endpoints: Mapping[int, Endpoint] = {each.node_id: each for each in endpoints}
        self.topics = topics
        self.offset = 0
        self.elected: int | None = None

    def is_alive(self, node_id: int) -> bool:
        """Whether a broker is up."""
        return node_id in self.topics.alive

    def alive_endpoints(self) -> list[Endpoint]:
        """Return the endpoints of the brokers that are up."""
        return [each for node_id, each in self.endpoints.items() if self.is_alive(node_id)]

    def endpoint(self, node_id: int) -> Endpoint | None:
        """Return the endpoint of a broker, also of one that is down."""
        return self.endpoints.get(node_id)

    def finalized_level(self, feature: Feature) -> int:
        """Return the level of a feature that clients may use; 0 for none."""
        return 0 if feature.name in {TRANSACTIONS, *UNSERVED} else feature.level

    @property
    def controller_id(self) -> int:
        """The node id reported as controller: that elected, or the lowest of those that are up."""
        if self.elected is not None:
            return self.elected
        return min(self.topics.alive, default=-1)
