"""The metadata of a cluster as request handlers need it, from the `MetadataImage` of the broker.

It shows the image that was published last; nothing is copied that did not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from ..configs import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, ConfigKey, ResourceType
from ..configs.features import KRAFT, Feature, served_level
from ..metadata import (
    NO_LEADER,
    BrokerRegistration,
    MetadataDelta,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from .context import Endpoint
from .control_state import Ensemble
from .topics import INTERNAL

NO_CONTROLLER: Final = -1


class PartitionMetadata:
    """A partition of an image. offline: replicas that are offline, or on brokers that are down."""

    __slots__ = ("index", "isr", "leader_epoch", "leader_id", "offline", "replicas")

    def __init__(self, image: MetadataImage, topic: TopicImage, index: int) -> None:
        registration = topic.partitions[index]
        self.index = index
        self.replicas = list(registration.replicas)
        self.isr = list(registration.isr)
        self.leader_epoch = registration.leader_epoch
        self.leader_id = registration.leader if _is_alive(image, registration.leader) else NO_LEADER
        self.offline = [
            each for each in registration.replicas if not _is_online(image, registration, each)
        ]


class TopicMetadata:
    """A topic of an image. configs: the values set for it."""

    __slots__ = ("_image", "configs", "name", "partitions", "topic_id")

    def __init__(self, image: MetadataImage, topic: TopicImage) -> None:
        self._image = image
        self.name = topic.name
        self.topic_id = topic.topic_id
        self.configs: Mapping[str, str] = image.config(ResourceType.TOPIC, topic.name)
        self.partitions = [
            PartitionMetadata(image, topic, index) for index in sorted(topic.partitions)
        ]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL

    def partition(self, index: int) -> PartitionMetadata | None:
        """Find a partition by its index."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class TopicsMetadata:
    """The topics of an image; each is made when it is first needed.

    created: the offset of the first image that has the newest topic.
    """

    def __init__(self) -> None:
        self.created = -1
        self._image = MetadataImage()
        self._views: dict[bytes, TopicMetadata] = {}
        self._partition_count: int | None = 0

    def publish(self, image: MetadataImage, delta: MetadataDelta | None) -> None:
        """Show another image. delta: what changed; None for anything."""
        self._image = image
        self._partition_count = None
        if delta is None or delta.topics:
            self.created = image.offset
        if delta is None or delta.brokers:
            self._views.clear()
            return
        for topic_id in (*delta.topics, *delta.deleted_topics):
            self._views.pop(topic_id, None)
        for key in delta.partitions:
            self._views.pop(key.topic_id, None)
        for resource in delta.configs:
            if resource.type == ResourceType.TOPIC:
                self._views.pop(image.topic_ids.get(resource.name, b""), None)

    @property
    def partition_count(self) -> int:
        if self._partition_count is None:
            topics = self._image.topics.values()
            self._partition_count = sum(len(topic.partitions) for topic in topics)
        return self._partition_count

    def __iter__(self) -> Iterator[TopicMetadata]:
        return (self._view(topic) for topic in list(self._image.topics.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._image.topic_ids

    def get(self, name: str) -> TopicMetadata | None:
        """Find a topic by name."""
        topic = self._image.topic(name)
        return None if topic is None else self._view(topic)

    def by_id(self, topic_id: bytes) -> TopicMetadata | None:
        """Find a topic by id."""
        topic = self._image.topics.get(topic_id)
        return None if topic is None else self._view(topic)

    def partition(self, name: str, index: int) -> PartitionMetadata | None:
        """Find a partition."""
        topic = self.get(name)
        return None if topic is None else topic.partition(index)

    def _view(self, topic: TopicImage) -> TopicMetadata:
        view = self._views.get(topic.topic_id)
        if view is None:
            view = self._views[topic.topic_id] = TopicMetadata(self._image, topic)
        return view


class MetadataCache:
    """The cluster as the clients of one listener see it.

    listener: the name of the listener whose endpoints clients are shown. kraft_version: returns the
    level of that feature, which is not in the image. ensemble: who elects the controller that they
    are shown, in ZooKeeper. offset: of the last record that is in the image.
    """

    def __init__(
        self, listener: str, kraft_version: Callable[[], int], ensemble: Ensemble | None = None
    ) -> None:
        self._listener = listener
        self._kraft_version = kraft_version
        self._ensemble = ensemble
        self.image = MetadataImage()
        self.topics = TopicsMetadata()
        self._endpoints: dict[int, Endpoint] = {}

    def publish(self, image: MetadataImage, delta: MetadataDelta | None = None) -> None:
        """Show another image. delta: what changed; None for anything."""
        self.image = image
        self.topics.publish(image, delta)
        if delta is None or delta.brokers:
            endpoints = map(self._endpoint_of, image.brokers.values())
            self._endpoints = {each.node_id: each for each in endpoints if each is not None}

    def topic_name(self, topic_id: bytes) -> str:
        """Return the name of a topic, or its id if it is unknown."""
        topic = self.image.topics.get(topic_id)
        return topic_id.hex() if topic is None else topic.name

    def _endpoint_of(self, broker: BrokerRegistration) -> Endpoint | None:
        for each in broker.endpoints:
            if each.name == self._listener:
                return Endpoint(broker.broker_id, each.host, each.port, broker.rack)
        return None

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """Return the values set for a group."""
        return self._normalized(ResourceType.GROUP, group_id, GROUP_CONFIGS)

    def client_metrics_configs(self, subscription: str) -> Mapping[str, str]:
        """Return the values set for a subscription of client metrics."""
        return self._normalized(ResourceType.CLIENT_METRICS, subscription, CLIENT_METRICS_CONFIGS)

    def _normalized(
        self, type: ResourceType, name: str, keys: Mapping[str, ConfigKey]
    ) -> Mapping[str, str]:
        configs = self.image.config(type, name)
        return {key: keys[key].normalized(value) for key, value in configs.items() if key in keys}

    def configured(self, type: int) -> list[str]:
        """Return the names of the resources of a type for which values are set."""
        return [each.name for each in self.image.configs if each.type == type and each.name]

    @property
    def offset(self) -> int:
        return self.image.offset

    def finalized_level(self, feature: Feature) -> int:
        """Return the level of a feature that clients may use, 0 for none.

        No level is higher than those of the release, which may be older than the one that the image
        was written by.
        """
        if feature.name == KRAFT:
            level = self._kraft_version()
        else:
            level = self.image.features.get(feature.name, 0)
        return served_level(feature.name, min(level, feature.highest))

    @property
    def controller_id(self) -> int:
        """A broker that is up: clients send it what it forwards to the controller, as in Kafka.

        With ZooKeeper it is the elected one.
        """
        if self._ensemble is not None:
            elected = self._ensemble.controller_id
            return NO_CONTROLLER if elected is None else elected
        return min((each.node_id for each in self.alive_endpoints()), default=NO_CONTROLLER)

    def alive_endpoints(self) -> Sequence[Endpoint]:
        """Return the endpoints of the brokers that are not fenced."""
        return [each for each in self._endpoints.values() if _is_alive(self.image, each.node_id)]

    def endpoint(self, node_id: int) -> Endpoint | None:
        """Return the endpoint of a broker, also of one that is down."""
        return self._endpoints.get(node_id)


def _is_online(image: MetadataImage, partition: PartitionRegistration, broker_id: int) -> bool:
    """Whether the broker of a replica is alive, and the log directory of the replica online."""
    directory = partition.directory(broker_id)
    alive = _is_alive(image, broker_id)
    return alive and image.brokers[broker_id].has_online_directory(directory)


def _is_alive(image: MetadataImage, node_id: int) -> bool:
    broker = image.brokers.get(node_id)
    return broker is not None and not broker.fenced
