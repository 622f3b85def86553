"""What a controller's operations read and write.

An operation writes records, and sees each of them applied at once; what it wrote is either
committed as a whole, or lost with the controller: it is one `Append`, or a transaction (KIP-868).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..configs import TOPIC_CONFIGS, ConfigKey
from ..configs.features import ELR as ELR_FEATURE
from ..configs.features import KRAFT, NEWEST, UNSERVED, Feature, served_level
from ..messages.begin_transaction_record import BeginTransactionRecord
from ..messages.end_transaction_record import EndTransactionRecord
from ..messages.user_scram_credential_record import UserScramCredentialRecord
from ..metadata import (
    METADATA_VERSION,
    BrokerRegistration,
    MetadataDelta,
    MetadataImage,
    VersionedRecord,
    broker_value,
    replay,
    topic_value,
    value_of_topic,
)
from ..metadata.registrations import UNASSIGNED
from ..metadata.versions import ELR, OLDEST, TRANSACTIONS, versioned
from ..primitives import Message
from .mutation_quotas import MutationQuotas
from .placement import RandomNumbers
from .sessions import Sessions

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"


def supported_features(features: Iterable[Feature]) -> dict[str, tuple[int, int]]:
    """Return the lowest and the highest level of each feature, but that of the quorum."""
    return {each.name: (each.lowest, each.highest) for each in features if each.name != KRAFT}


def bootstrap_features(features: Iterable[Feature]) -> dict[str, int]:
    """Return the levels of the features of a new cluster."""
    return {
        each.name: served_level(each.name, each.level)
        for each in features
        if each.name not in {KRAFT, *UNSERVED}
    }


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The settings of a controller. Times in seconds.

    node_id: its own. epoch_ms: milliseconds since 1970 at `now` 0.

    features: those that it supports. bootstrap: the levels of a new cluster. static: values of its
    own configuration, which broker-wide and topic values take precedence over. scram_credentials:
    those that a new cluster has.
    max_partitions_per_request: that one may create. max_partitions: of all topics.
    max_records_per_request: that creating or deleting topics may write. slice: how many topics,
    partitions or records of a request are processed before other events are. zookeeper: whether the
    brokers show a controller in ZooKeeper, which moves the leaders of a stopping broker by
    ControlledShutdown. topic_configs: the keys of topics that the release has.
    """

    cluster_id: str
    node_id: int = -1
    epoch_ms: int = 0
    session_timeout: float = 9.0
    rebalance_interval: float | None = 300.0
    max_elections: int = 1000
    max_partitions_per_request: int = 10_000
    max_partitions: int = 100_000
    max_records_per_request: int = 10_000
    slice: int = 256
    zookeeper: bool = False
    features: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: supported_features(NEWEST)
    )
    bootstrap: Mapping[str, int] = field(default_factory=lambda: bootstrap_features(NEWEST))
    static: Mapping[str, str] = field(default_factory=dict)
    topic_configs: Mapping[str, ConfigKey] = field(default_factory=lambda: TOPIC_CONFIGS)
    scram_credentials: Sequence[UserScramCredentialRecord] = ()

    def wall_ms(self, now: float) -> int:
        """Return the wall-clock time in milliseconds since 1970."""
        return self.epoch_ms + int(now * 1000)


class ControllerState:
    """The newest metadata, committed or not, and the records that an operation writes.

    next_offset: of the next record. epoch: of the controller.
    """

    def __init__(
        self,
        image: MetadataImage,
        config: ControllerConfig,
        rng: RandomNumbers,
        new_uuid: Callable[[], bytes],
        next_offset: int,
    ) -> None:
        self.image = image
        self.config = config
        self.rng = rng
        self.new_uuid = new_uuid
        self.sessions = Sessions(config.session_timeout)
        self.next_offset = next_offset
        self.mutation_quotas = MutationQuotas(self.broker_value)
        self.in_transaction = False
        """Whether what was written is seen only after what is still to be written."""
        self._written: list[VersionedRecord] = []
        self._delta = MetadataDelta()

    @property
    def log_end(self) -> int:
        """The offset of the first record that was not taken."""
        return self.next_offset - len(self._written)

    def move_log_end(self, offset: int) -> None:
        """Continue after records of the quorum itself."""
        self.next_offset = offset + len(self._written)

    @property
    def metadata_version(self) -> int:
        return self.image.features.get(METADATA_VERSION, OLDEST)

    @property
    def elr_enabled(self) -> bool:
        return self.metadata_version >= ELR and self.image.features.get(ELR_FEATURE, 0) > 0

    def write(self, message: Message) -> None:
        """Write a record, and apply it."""
        replay(self.image, message, self.next_offset, self._delta)
        self.append(message)

    def append(self, message: Message) -> None:
        """Write a record that an image does not hold, such as the end of a transaction."""
        self._written.append(versioned(message, self.metadata_version))
        self.next_offset += 1

    def write_together(self, name: str, records: Iterable[Message], count: int) -> Iterator[None]:
        """Write so many records of which all are committed, or none; yield after each.

        More than a slice are a transaction, where the metadata.version has transactions.
        """
        divided = count > self.config.slice and self.metadata_version >= TRANSACTIONS
        if divided:
            self.begin_transaction(name)
        for record in records:
            self.write(record)
            yield
        if divided:
            self.end_transaction()

    def begin_transaction(self, name: str) -> None:
        """Begin a transaction: its records may be appended one after the other."""
        self.append(BeginTransactionRecord(name=name))
        self.in_transaction = True

    def end_transaction(self) -> None:
        """End a transaction: all of its records are seen once this one is committed."""
        self.append(EndTransactionRecord())
        self.in_transaction = False

    def take(self) -> list[VersionedRecord]:
        """Take the records that were written."""
        written, self._written, self._delta = self._written, [], MetadataDelta()
        return written

    def broker(self, broker_id: int, epoch: int) -> BrokerRegistration | None:
        """Find a broker by its id and epoch; None: STALE_BROKER_EPOCH."""
        registration = self.image.brokers.get(broker_id)
        return registration if registration is not None and registration.epoch == epoch else None

    def default_directory(self, broker_id: int) -> bytes:
        """Return the directory of a new replica."""
        broker = self.image.brokers.get(broker_id)
        return UNASSIGNED if broker is None else broker.default_directory

    # -- configuration

    def broker_value(self, name: str) -> str:
        """Return the value of a broker's key: dynamic, else static, else the default."""
        return broker_value(self.image, name, self.config.static)

    def topic_value(self, topic: str, name: str) -> str:
        """Return the value of a topic's key, its own or that of the brokers."""
        return topic_value(self.image, topic, name, self.config.static)

    def value_of_topic(self, configs: Mapping[str, str], name: str) -> str:
        """Return the value of a key of a topic with these configs."""
        return value_of_topic(self.image, configs, name, self.config.static)

    def min_isr(self, topic_id: bytes) -> int:
        """Return the effective `min.insync.replicas`: no more than there are replicas."""
        topic = self.image.topics[topic_id]
        replicas = next(iter(topic.partitions.values())).replicas
        return min(int(self.topic_value(topic.name, MIN_ISR)), len(replicas))

    def unclean_enabled(self, topic_id: bytes) -> bool:
        """Return whether a replica out of the ISR may become leader by itself."""
        return self.topic_value(self.image.topics[topic_id].name, UNCLEAN) == "true"
