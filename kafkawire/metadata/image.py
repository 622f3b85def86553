"""The metadata of a cluster at one offset of `__cluster_metadata`.

Two images are equal when they hold the same metadata, whatever the records that led there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ..messages.access_control_entry_record import AccessControlEntryRecord
from ..messages.delegation_token_record import DelegationTokenRecord
from ..messages.register_controller_record import RegisterControllerRecord
from ..messages.user_scram_credential_record import UserScramCredentialRecord
from .indexes import PartitionIndexes
from .registrations import BrokerRegistration, PartitionRegistration

METADATA_VERSION: Final = "metadata.version"


class ConfigResource(NamedTuple):
    """What has a configuration. type: of `kafkawire.configs.ResourceType`; name: "" for default."""

    type: int
    name: str


class TopicImage:
    """A topic and its partitions by index."""

    __slots__ = ("name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: dict[int, PartitionRegistration] = {}

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TopicImage)
            and (self.name, self.topic_id) == (other.name, other.topic_id)
            and self.partitions == other.partitions
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {self.partitions!r})"

    def copy(self) -> TopicImage:
        topic = TopicImage(self.name, self.topic_id)
        topic.partitions = dict(self.partitions)
        return topic


QuotaEntity = frozenset[tuple[str, str | None]]
"""(type, name) of what a quota is for; the name is None for the default."""

COMPARED: Final = (
    "features",
    "brokers",
    "controllers",
    "topics",
    "configs",
    "quotas",
    "next_producer_id",
    "scram_credentials",
    "acls",
    "delegation_tokens",
)


class MetadataImage:
    """All metadata: changed by `replay` only.

    offset: of the last record that is in it, -1 for none. registered_at: broker -> offset of its
    newest RegisterBrokerRecord. topic_ids: name -> id. colliding: name with "." as "_" -> names
    that are one metric's name.
    """

    def __init__(self) -> None:
        self.offset = -1
        self.features: dict[str, int] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.registered_at: dict[int, int] = {}
        self.controllers: dict[int, RegisterControllerRecord] = {}
        self.topics: dict[bytes, TopicImage] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.colliding: dict[str, dict[str, None]] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.next_producer_id = 0
        self.scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self.acls: dict[bytes, AccessControlEntryRecord] = {}
        self.delegation_tokens: dict[str, DelegationTokenRecord] = {}
        self.indexes = PartitionIndexes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetadataImage) and not self.differences(other)

    __hash__ = None  # type: ignore[assignment]

    def differences(self, other: MetadataImage) -> list[str]:
        """Name the parts in which two images differ."""
        return [name for name in COMPARED if getattr(self, name) != getattr(other, name)]

    def copy(self) -> MetadataImage:
        """Copy an image; values in it are shared."""
        image = MetadataImage()
        image.offset = self.offset
        image.features = dict(self.features)
        image.brokers = dict(self.brokers)
        image.registered_at = dict(self.registered_at)
        image.controllers = dict(self.controllers)
        image.topics = {key: topic.copy() for key, topic in self.topics.items()}
        image.topic_ids = dict(self.topic_ids)
        image.colliding = {key: dict(names) for key, names in self.colliding.items()}
        image.configs = {key: dict(values) for key, values in self.configs.items()}
        image.quotas = {key: dict(values) for key, values in self.quotas.items()}
        image.next_producer_id = self.next_producer_id
        image.scram_credentials = dict(self.scram_credentials)
        image.acls = dict(self.acls)
        image.delegation_tokens = dict(self.delegation_tokens)
        image.indexes = self.indexes.copy()
        return image

    def topic(self, name: str) -> TopicImage | None:
        """Find a topic by name."""
        topic_id = self.topic_ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partition(self, at: tuple[bytes, int]) -> PartitionRegistration | None:
        """Find a partition."""
        topic = self.topics.get(at[0])
        return None if topic is None else topic.partitions.get(at[1])

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        """Iterate over all partitions."""
        for topic in self.topics.values():
            for index, partition in topic.partitions.items():
                yield topic, index, partition

    def config(self, type: int, name: str) -> Mapping[str, str]:
        """Return the dynamic values of a resource."""
        return self.configs.get(ConfigResource(type, name), {})

    def is_active(self, broker_id: int) -> bool:
        """Return whether a broker is registered and neither fenced nor shutting down."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active
