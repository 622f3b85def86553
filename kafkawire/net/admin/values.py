"""Results of the admin client, under Kafka's names.

They are plain tuples: they compare, print and pickle.
"""

from __future__ import annotations

from typing import Final, NamedTuple

EARLIEST: Final = -2
LATEST: Final = -1
"""Special timestamps of ListOffsets; others are milliseconds."""


class BrokerInfo(NamedTuple):
    """A broker and its address; rack: None without one; is_fenced: None if it is not reported."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool | None = None


class ClusterInfo(NamedTuple):
    """A cluster; controller_id: -1 if unknown."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerInfo, ...]


class ApiRange(NamedTuple):
    """The versions of an API that a broker supports; name: "" for an API unknown to us."""

    api_key: int
    name: str
    lowest: int
    highest: int


class Feature(NamedTuple):
    """A feature (KIP-584): the levels that a broker supports; level: the cluster's, 0 is off."""

    name: str
    lowest: int
    highest: int
    level: int


class BrokerVersions(NamedTuple):
    """What a broker's ApiVersions response says; apis by API key, features by name."""

    apis: tuple[ApiRange, ...]
    features: tuple[Feature, ...]


class LogDirInfo(NamedTuple):
    """A log directory of a broker; sizes in bytes, -1 if the broker does not report them.

    error: the code of the directory, 0 for none; replicas: how many it holds, with future ones;
    size: of their logs; total, usable: of its volume (KIP-827).
    """

    path: str
    error: int
    replicas: int
    size: int
    total: int
    usable: int


class ReplicaInfo(NamedTuple):
    """A replica in a log directory of a broker. size: bytes of its log.

    offset_lag: records behind the high watermark, or, of a future replica, behind the current one.
    is_future: whether it replaces the current one in another directory when it has caught up.
    """

    topic: str
    partition: int
    path: str
    size: int
    offset_lag: int
    is_future: bool


class PartitionReassignment(NamedTuple):
    """A reassignment in progress. replicas: all, with those that are added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class QuorumReplica(NamedTuple):
    """A voter or observer, as the leader of the quorum knows it.

    directory_id: zero from brokers that do not report it; log_end_offset: -1 if unknown; times in
    milliseconds of the leader's clock, -1 if unknown.
    """

    replica_id: int
    directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


class QuorumInfo(NamedTuple):
    """The quorum of the controllers (KIP-595); leader_id: -1 without one."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]


class PartitionInfo(NamedTuple):
    """A partition; leader: -1 without one; leader_epoch: -1 if the broker does not report it."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicInfo(NamedTuple):
    """A topic; topic_id: 16 bytes, zero from brokers without topic ids."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionInfo, ...]


class ConfigResource(NamedTuple):
    """What a configuration is of, in the names of Kafka's tools.

    resource_type: TOPIC, BROKER (named by its id, "" for the default of all), BROKER_LOGGER (by the
    id), GROUP, CLIENT_METRICS (a subscription).
    """

    resource_type: str
    name: str


class ConfigSynonym(NamedTuple):
    """A value that counts if those before it are not set; source: as of `ConfigEntry`."""

    name: str
    value: str | None
    source: str


class ConfigEntry(NamedTuple):
    """A setting; value: None if sensitive or absent; is_default: not set for the resource.

    source: in Kafka's name, such as DYNAMIC_TOPIC_CONFIG; config_type: such as INT; ""
    from brokers that do not report them. synonyms, documentation: if they were requested.
    """

    name: str
    value: str | None
    read_only: bool
    is_default: bool
    is_sensitive: bool
    source: str = ""
    config_type: str = ""
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None


class Offset(NamedTuple):
    """An offset found by ListOffsets; both -1 without one."""

    offset: int
    timestamp: int
    leader_epoch: int


class TransactionListing(NamedTuple):
    """A transactional id, as its coordinator lists it. state: e.g. Ongoing."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionInfo(NamedTuple):
    """The last transaction of a transactional id. start_ms: since 1970, -1 if none is open.

    partitions: those to which its markers will be written, (topic, partition).
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[tuple[str, int], ...]


class ProducerInfo(NamedTuple):
    """A producer of a partition, as the leader knows it. last_timestamp: in milliseconds, or -1.

    coordinator_epoch: of its last marker, -1 for none. start_offset: of its open transaction, -1
    for none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    start_offset: int


class HangingTransaction(NamedTuple):
    """An open transaction in a partition that no coordinator will end; fields of `ProducerInfo`."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int
