"""One broker of the cluster: what its request handlers work with.

A broker coordinates only the groups whose partition of `__consumer_offsets` it leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..configs.features import SHARE, STREAMS, features
from ..protocol import ErrorCode
from .apis import SupportedApis
from .configs import Settings
from .context import Context, Endpoint
from .fetch_sessions import Sessions
from .forwarding import ForwardingManager
from .forwarding.topic_creation import TopicCreation
from .groups.coordinators import Coordinators
from .machines import Machines
from .metadata_cache import MetadataCache, TopicsMetadata
from .network.request_channel import RequestChannel
from .quotas.throttling import Throttling
from .share.end_offsets import EndOffsets
from .share.shares import Shares
from .share_coordinator.coordinators import ShareCoordinators
from .topic_rules import TopicRules
from .topics import OFFSETS_TOPIC
from .transactions import Transactions

if TYPE_CHECKING:
    from ..metadata import MetadataImage
    from .control_state import ControlState
    from .groups.coordinator import Coordinator
    from .security.authorizer import StandardAuthorizer


@dataclass(slots=True)
class Broker:
    """One node: the context of the handlers of its requests.

    apis: what its listener supports. endpoint: its own. sessions: of Fetch. rules: of records that
    clients produce. controller: the way to the active one. listeners: its own by their names, where
    these are not the one that follows from the settings. control: the epochs that it knows of
    controllers in ZooKeeper, if the cluster has these. authorizer: None allows everything.
    is_controller: whether its listener is that of controllers.
    """

    apis: SupportedApis
    context: Context
    channel: RequestChannel
    endpoint: Endpoint
    metadata: MetadataCache
    machines: Machines
    throttling: Throttling
    sessions: Sessions
    rules: TopicRules
    controller: ForwardingManager
    topic_creation: TopicCreation
    groups: Coordinators
    transactions: Transactions
    share_coordinators: ShareCoordinators
    shares: Shares
    end_offsets: EndOffsets
    listeners: Mapping[str, Endpoint] = field(default_factory=dict)
    control: ControlState | None = None
    authorizer: StandardAuthorizer | None = None
    is_controller: bool = False
    topics: TopicsMetadata = field(init=False)
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        self.topics = self.metadata.topics
        self.settings = self.context.settings

    @property
    def node_id(self) -> int:
        return self.endpoint.node_id

    def finalized_level(self, name: str) -> int:
        """Return the level of a feature that is finalized; 0 for none of the release."""
        for feature in features(self.apis.release):
            if feature.name == name:
                return self.metadata.finalized_level(feature)
        return 0

    def feature_error(self, name: str) -> ErrorCode:
        """Return why requests of a feature are refused, NONE if it is finalized.

        A broker that has started does not know it before it has published metadata: clients retry.
        """
        if self.finalized_level(name):
            return ErrorCode.NONE
        is_published = self.metadata.offset >= 0
        return (
            ErrorCode.UNSUPPORTED_VERSION
            if is_published
            else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        )

    @property
    def share_groups_error(self) -> ErrorCode:
        """Why requests of share groups (KIP-932) are refused, NONE if the cluster has these."""
        return self.feature_error(SHARE)

    @property
    def streams_groups_error(self) -> ErrorCode:
        """Why requests of Streams groups (KIP-1071) are refused, NONE if the cluster has these."""
        is_enabled = "streams" in self.settings.items("group.coordinator.rebalance.protocols")
        return self.feature_error(STREAMS) if is_enabled else ErrorCode.UNSUPPORTED_VERSION

    @property
    def image(self) -> MetadataImage:
        """The metadata that was published last."""
        return self.metadata.image

    def coordinator(self, group_id: str) -> Coordinator | ErrorCode:
        """Return the coordinator of a group, if this broker is its coordinator."""
        return self.groups.coordinator(group_id)

    def coordinators(self) -> list[Coordinator] | ErrorCode:
        """Return the coordinators on this broker, or an error while one of them is loading."""
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return []
        mine = [each.index for each in topic.partitions if each.leader_id == self.node_id]
        endpoints = []
        for coordinator in map(self.groups.of, mine):
            if isinstance(coordinator, ErrorCode):
                return coordinator
            endpoints.append(coordinator)
        return endpoints
