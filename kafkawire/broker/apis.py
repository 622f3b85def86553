"""The APIs of brokers and controllers: a row says where an API is served, handled and authorized.

Handlers, ApiVersions, forwarding and the listeners read this table; the versions are those of the
release (`releases.py`). To add an API, write its handler, its row and its test.
"""

# over 300 lines: one table, with a row for each API

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, Flag, auto
from functools import cache
from typing import Final, NamedTuple

from ..messages.api_key import ApiKey
from .configs import Settings
from .releases import Offer, Versions, before, versions_of, with_zookeeper
from .security.permissions import Permission

P = Permission


class Listener(Flag):
    """Who listens, as in `listeners` of Kafka's schemas."""

    BROKER = auto()
    CONTROLLER = auto()
    ZK_BROKER = auto()
    """A broker of a cluster with ZooKeeper, for the controller and the other brokers."""


class Handled(Enum):
    """Which part of a cluster handles a request."""

    BROKER = "any broker"
    CONTROLLER = "the active controller; brokers forward requests of clients to it"
    QUORUM = "the leader of the quorum; brokers forward requests of clients to it"
    REPLICAS = "the broker that has the replicas, mostly as their leader"
    GROUP_COORDINATOR = "the coordinator of the group"
    SHARE_COORDINATOR = "the coordinator of the share partition"
    TRANSACTION_COORDINATOR = "the coordinator of the transactional id"


FORWARDING: Final = "forwarding"
TRANSACTIONAL: Final = "transactional"
SHARE_STATE: Final = "share_state"
METRIC_REPORTERS: Final = "metric.reporters"
KAFKAS_REPORTER: Final = "org.apache.kafka.common.metrics.JmxReporter"


@dataclass(frozen=True, slots=True)
class Api:
    """An API.

    permissions: those that Kafka's authorizer checks, depending on the request; () if it checks
    none. handler: its module in `handlers`, None for the one that is named for the API. versions:
    those that its handler has, None for all. plugin: the setting that names the classes of plugins,
    without which ApiVersions does not list it.
    """

    handled: Handled
    permissions: tuple[Permission, ...] = ()
    listeners: Listener = Listener.BROKER
    handler: str | None = None
    versions: Versions | None = None
    plugin: str | None = None


SHARE_GROUPS: Final = Versions(1, 1)
SHARE_PARTITIONS: Final = Versions(1, 2)
"""Version 0 of the APIs of share groups is that of their early access in 4.0."""
EITHER: Final = Listener.BROKER | Listener.CONTROLLER
APIS: Final[Mapping[ApiKey, Api]] = {
    ApiKey.PRODUCE: Api(Handled.REPLICAS, (P.WRITE_TOPIC, P.WRITE_TRANSACTION)),
    ApiKey.FETCH: Api(Handled.REPLICAS, (P.READ_TOPIC, P.CLUSTER_ACTION), EITHER),
    ApiKey.LIST_OFFSETS: Api(Handled.REPLICAS, (P.DESCRIBE_TOPIC,)),
    ApiKey.METADATA: Api(Handled.BROKER, (P.DESCRIBE_TOPIC, P.CREATE_IN_CLUSTER, P.CREATE_TOPIC)),
    ApiKey.LEADER_AND_ISR: Api(
        Handled.REPLICAS, (P.CLUSTER_ACTION,), Listener.ZK_BROKER, "zookeeper.leader_and_isr"
    ),
    ApiKey.STOP_REPLICA: Api(
        Handled.REPLICAS, (P.CLUSTER_ACTION,), Listener.ZK_BROKER, "zookeeper.stop_replica"
    ),
    ApiKey.UPDATE_METADATA: Api(
        Handled.BROKER, (P.CLUSTER_ACTION,), Listener.ZK_BROKER, "zookeeper.update_metadata"
    ),
    ApiKey.CONTROLLED_SHUTDOWN: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.ZK_BROKER, "zookeeper.controlled_shutdown"
    ),
    ApiKey.OFFSET_COMMIT: Api(Handled.GROUP_COORDINATOR, (P.READ_GROUP, P.READ_TOPIC)),
    ApiKey.OFFSET_FETCH: Api(Handled.GROUP_COORDINATOR, (P.DESCRIBE_GROUP, P.DESCRIBE_TOPIC)),
    ApiKey.FIND_COORDINATOR: Api(
        Handled.BROKER, (P.DESCRIBE_GROUP, P.DESCRIBE_TRANSACTION, P.CLUSTER_ACTION)
    ),
    ApiKey.JOIN_GROUP: Api(Handled.GROUP_COORDINATOR, (P.READ_GROUP,)),
    ApiKey.HEARTBEAT: Api(Handled.GROUP_COORDINATOR, (P.READ_GROUP,)),
    ApiKey.LEAVE_GROUP: Api(Handled.GROUP_COORDINATOR, (P.READ_GROUP,)),
    ApiKey.SYNC_GROUP: Api(Handled.GROUP_COORDINATOR, (P.READ_GROUP,)),
    ApiKey.DESCRIBE_GROUPS: Api(Handled.GROUP_COORDINATOR, (P.DESCRIBE_GROUP,)),
    ApiKey.LIST_GROUPS: Api(Handled.GROUP_COORDINATOR, (P.DESCRIBE_CLUSTER, P.DESCRIBE_GROUP)),
    ApiKey.SASL_HANDSHAKE: Api(Handled.BROKER, (), EITHER),
    ApiKey.API_VERSIONS: Api(Handled.BROKER, (), EITHER),
    ApiKey.CREATE_TOPICS: Api(
        Handled.CONTROLLER, (P.CREATE_IN_CLUSTER, P.CREATE_TOPIC, P.DESCRIBE_TOPIC_CONFIGS), EITHER
    ),
    ApiKey.DELETE_TOPICS: Api(Handled.CONTROLLER, (P.DELETE_TOPIC, P.DESCRIBE_TOPIC), EITHER),
    ApiKey.DELETE_RECORDS: Api(Handled.REPLICAS, (P.DELETE_TOPIC,)),
    ApiKey.INIT_PRODUCER_ID: Api(
        Handled.TRANSACTION_COORDINATOR, (P.WRITE_TRANSACTION, P.IDEMPOTENT_WRITE, P.WRITE_TOPIC)
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(Handled.REPLICAS, (P.DESCRIBE_TOPIC, P.CLUSTER_ACTION)),
    ApiKey.ADD_PARTITIONS_TO_TXN: Api(
        Handled.TRANSACTION_COORDINATOR,
        (P.WRITE_TRANSACTION, P.WRITE_TOPIC, P.CLUSTER_ACTION),
        handler=TRANSACTIONAL,
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: Api(
        Handled.TRANSACTION_COORDINATOR, (P.WRITE_TRANSACTION, P.READ_GROUP), handler=TRANSACTIONAL
    ),
    ApiKey.END_TXN: Api(
        Handled.TRANSACTION_COORDINATOR, (P.WRITE_TRANSACTION,), handler=TRANSACTIONAL
    ),
    ApiKey.WRITE_TXN_MARKERS: Api(
        Handled.REPLICAS, (P.CLUSTER_ACTION, P.ALTER_CLUSTER), handler=TRANSACTIONAL
    ),
    ApiKey.TXN_OFFSET_COMMIT: Api(
        Handled.GROUP_COORDINATOR,
        (P.WRITE_TRANSACTION, P.READ_GROUP, P.READ_TOPIC),
        handler=TRANSACTIONAL,
    ),
    ApiKey.DESCRIBE_ACLS: Api(Handled.BROKER, (P.DESCRIBE_CLUSTER,)),
    ApiKey.CREATE_ACLS: Api(Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.DELETE_ACLS: Api(Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.DESCRIBE_CONFIGS: Api(
        Handled.BROKER,
        (P.DESCRIBE_CLUSTER_CONFIGS, P.DESCRIBE_TOPIC_CONFIGS, P.DESCRIBE_GROUP_CONFIGS),
    ),
    ApiKey.ALTER_CONFIGS: Api(
        Handled.CONTROLLER,
        (P.ALTER_CLUSTER_CONFIGS, P.ALTER_TOPIC_CONFIGS, P.ALTER_GROUP_CONFIGS),
        EITHER,
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Api(Handled.REPLICAS, (P.ALTER_CLUSTER,)),
    ApiKey.DESCRIBE_LOG_DIRS: Api(Handled.REPLICAS, (P.DESCRIBE_CLUSTER,), handler=FORWARDING),
    ApiKey.SASL_AUTHENTICATE: Api(Handled.BROKER, (), EITHER),
    ApiKey.CREATE_PARTITIONS: Api(Handled.CONTROLLER, (P.ALTER_TOPIC,), EITHER),
    ApiKey.CREATE_DELEGATION_TOKEN: Api(Handled.CONTROLLER, (P.CREATE_USER_TOKENS,), EITHER),
    ApiKey.RENEW_DELEGATION_TOKEN: Api(Handled.CONTROLLER, (), EITHER),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Api(Handled.CONTROLLER, (), EITHER),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Api(
        Handled.BROKER, (P.DESCRIBE_TOKEN, P.DESCRIBE_USER_TOKENS)
    ),
    ApiKey.DELETE_GROUPS: Api(Handled.GROUP_COORDINATOR, (P.DELETE_GROUP,)),
    ApiKey.ELECT_LEADERS: Api(Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(
        Handled.CONTROLLER,
        (P.ALTER_CLUSTER_CONFIGS, P.ALTER_TOPIC_CONFIGS, P.ALTER_GROUP_CONFIGS),
        EITHER,
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Api(
        Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Api(
        Handled.CONTROLLER, (P.DESCRIBE_CLUSTER,), EITHER, FORWARDING
    ),
    ApiKey.OFFSET_DELETE: Api(Handled.GROUP_COORDINATOR, (P.DELETE_GROUP, P.READ_TOPIC)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Api(Handled.BROKER, (P.DESCRIBE_CLUSTER_CONFIGS,)),
    ApiKey.ALTER_CLIENT_QUOTAS: Api(
        Handled.CONTROLLER, (P.ALTER_CLUSTER_CONFIGS,), EITHER, FORWARDING
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Api(Handled.BROKER, (P.DESCRIBE_CLUSTER,)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Api(
        Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING
    ),
    ApiKey.VOTE: Api(Handled.QUORUM, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING),
    ApiKey.BEGIN_QUORUM_EPOCH: Api(
        Handled.QUORUM, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.END_QUORUM_EPOCH: Api(
        Handled.QUORUM, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.DESCRIBE_QUORUM: Api(Handled.QUORUM, (P.DESCRIBE_CLUSTER,), EITHER, FORWARDING),
    ApiKey.ALTER_PARTITION: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.UPDATE_FEATURES: Api(Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.ENVELOPE: Api(Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING),
    ApiKey.FETCH_SNAPSHOT: Api(
        Handled.QUORUM, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.DESCRIBE_CLUSTER: Api(Handled.BROKER, (P.DESCRIBE_CLUSTER,), EITHER),
    ApiKey.DESCRIBE_PRODUCERS: Api(Handled.REPLICAS, (P.READ_TOPIC,), handler=TRANSACTIONAL),
    ApiKey.BROKER_REGISTRATION: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.BROKER_HEARTBEAT: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.UNREGISTER_BROKER: Api(Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.DESCRIBE_TRANSACTIONS: Api(
        Handled.TRANSACTION_COORDINATOR,
        (P.DESCRIBE_TRANSACTION, P.DESCRIBE_TOPIC),
        handler=TRANSACTIONAL,
    ),
    ApiKey.LIST_TRANSACTIONS: Api(
        Handled.TRANSACTION_COORDINATOR,
        (P.DESCRIBE_TRANSACTION,),
        handler=TRANSACTIONAL,
    ),
    ApiKey.ALLOCATE_PRODUCER_IDS: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.CONTROLLER_REGISTRATION: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Api(
        Handled.GROUP_COORDINATOR, (P.READ_GROUP, P.DESCRIBE_TOPIC)
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Api(
        Handled.GROUP_COORDINATOR, (P.DESCRIBE_GROUP, P.DESCRIBE_TOPIC)
    ),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Api(Handled.BROKER, plugin=METRIC_REPORTERS),
    ApiKey.PUSH_TELEMETRY: Api(Handled.BROKER, plugin=METRIC_REPORTERS),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: Api(
        Handled.CONTROLLER, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    ApiKey.LIST_CONFIG_RESOURCES: Api(Handled.BROKER, (P.DESCRIBE_CLUSTER_CONFIGS,)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Api(Handled.BROKER, (P.DESCRIBE_TOPIC,)),
    ApiKey.SHARE_GROUP_HEARTBEAT: Api(
        Handled.GROUP_COORDINATOR, (P.READ_GROUP, P.DESCRIBE_TOPIC), versions=SHARE_GROUPS
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: Api(
        Handled.GROUP_COORDINATOR, (P.DESCRIBE_GROUP, P.DESCRIBE_TOPIC), versions=SHARE_GROUPS
    ),
    ApiKey.SHARE_FETCH: Api(
        Handled.REPLICAS, (P.READ_GROUP, P.READ_TOPIC), versions=SHARE_PARTITIONS
    ),
    ApiKey.SHARE_ACKNOWLEDGE: Api(
        Handled.REPLICAS, (P.READ_GROUP, P.READ_TOPIC), versions=SHARE_PARTITIONS
    ),
    ApiKey.ADD_RAFT_VOTER: Api(Handled.QUORUM, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.REMOVE_RAFT_VOTER: Api(Handled.QUORUM, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
    ApiKey.UPDATE_RAFT_VOTER: Api(
        Handled.QUORUM, (P.CLUSTER_ACTION,), Listener.CONTROLLER, FORWARDING
    ),
    **dict.fromkeys(
        (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE,
            ApiKey.WRITE_SHARE_GROUP_STATE,
            ApiKey.DELETE_SHARE_GROUP_STATE,
            ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ),
        Api(Handled.SHARE_COORDINATOR, (P.CLUSTER_ACTION,), handler=SHARE_STATE),
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: Api(
        Handled.GROUP_COORDINATOR,
        (P.READ_GROUP, P.DESCRIBE_TOPIC, P.CREATE_IN_CLUSTER, P.CREATE_TOPIC),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: Api(
        Handled.GROUP_COORDINATOR, (P.DESCRIBE_GROUP, P.DESCRIBE_TOPIC)
    ),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Api(
        Handled.GROUP_COORDINATOR, (P.DESCRIBE_GROUP, P.DESCRIBE_TOPIC)
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Api(Handled.GROUP_COORDINATOR, (P.READ_GROUP, P.READ_TOPIC)),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Api(
        Handled.GROUP_COORDINATOR, (P.DELETE_GROUP, P.READ_TOPIC)
    ),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: Api(
        Handled.GROUP_COORDINATOR, (P.READ_GROUP,)
    ),
    ApiKey.UNREGISTER_CONTROLLER: Api(Handled.CONTROLLER, (P.ALTER_CLUSTER,), EITHER, FORWARDING),
}
"""API key -> the API.

The permissions are those of "Operations and resources on protocols" in Kafka's documentation, and
those that its code checks besides or instead: ElectLeaders needs Alter, not ClusterAction.
"""


def handler_of(key: ApiKey) -> str:
    """Return the module of the handler of an API. KeyError for one that is not served."""
    return APIS[key].handler or key.name.lower()


@cache
def served_on(listener: Listener) -> frozenset[ApiKey]:
    """Return the APIs that a listener serves."""
    return frozenset(key for key, api in APIS.items() if listener & api.listeners)


BETWEEN_BROKERS: Final = served_on(Listener.ZK_BROKER)
"""The APIs between brokers, if they show a cluster with ZooKeeper."""
FORWARDED: Final = frozenset(
    key
    for key in served_on(Listener.BROKER)
    if APIS[key].handled in (Handled.CONTROLLER, Handled.QUORUM)
)
"""The APIs whose requests brokers forward, and that may be in an Envelope."""

LISTED_FROM_0: Final = "4.0"
"""From this release on, Produce is listed from 0 but served from 3: librdkafka needs that."""


class SupportedApis(NamedTuple):
    """What a listener supports.

    listed: in ApiVersions, where Produce differs, without the APIs for plugins.
    """

    release: str
    served: Offer
    listed: Offer

    def listed_by(self, settings: Settings) -> Offer:
        """Return what ApiVersions lists: also the APIs for the plugins that are set.

        Any reporter but Kafka's own is taken for one that receives the metrics of clients.
        """
        plugged = {
            key: versions
            for key, versions in self.served.items()
            if (setting := APIS[key].plugin) and set(settings.items(setting)) - {KAFKAS_REPORTER}
        }
        return {**self.listed, **plugged}


@cache
def supported_apis(release: str, keys: frozenset[ApiKey]) -> SupportedApis:
    """Return the versions of APIs in a release. ValueError for an unknown release."""
    released = versions_of(release)
    served = {key: _implemented(key, released[key]) for key in sorted(keys) if key in released}
    listed = {key: versions for key, versions in served.items() if APIS[key].plugin is None}
    if ApiKey.PRODUCE in served and not before(release, LISTED_FROM_0):
        listed[ApiKey.PRODUCE] = served[ApiKey.PRODUCE]._replace(first=0)
    return SupportedApis(release, served, listed)


def between_brokers(release: str) -> Offer:
    """Return what brokers of a cluster with ZooKeeper send each other, in the newest version.

    ValueError for a release whose brokers need no ZooKeeper.
    """
    if release not in with_zookeeper():
        raise ValueError(
            f"no ZooKeeper in release {release}: expected one of {', '.join(with_zookeeper())}"
        )
    return supported_apis(release, BETWEEN_BROKERS).served


def client_apis(release: str, zookeeper: bool = False) -> SupportedApis:
    """Return what brokers support for clients. zookeeper: with the APIs between brokers.

    ValueError for a release whose brokers need no ZooKeeper.
    """
    apis = supported_apis(release, served_on(Listener.BROKER))
    if not zookeeper:
        return apis
    between = between_brokers(release)
    return SupportedApis(release, {**apis.served, **between}, {**apis.listed, **between})


def _implemented(key: ApiKey, released: Versions) -> Versions:
    versions = APIS[key].versions
    return released if versions is None else released & versions
